//! What can be said of a page.

use leptos::prelude::*;

use super::{
    Place, access,
    draft::Draft,
    icon, own, parts,
    shown::{Look, told},
    theme,
};
use crate::{load::Load, part::*, record::Record, text};

const TEMPLATES: &[(&str, &str)] = &[
    ("", "Plain"),
    ("document-search", "Documents: a list with texts"),
    ("media-search", "Media: wide pictures"),
    ("portrait-gallery", "Portraits: tall pictures"),
    (own::NAME, "Of your own: you say what stands where"),
];

const ARRANGEMENTS: &[(&str, &str)] = &[
    ("", "As the template has it"),
    ("grid", "Grid"),
    ("masonry", "Masonry"),
    ("list", "List"),
];

const FONTS: &[(&str, &str)] = &[
    ("", "The visitor's system"),
    ("Inter", "Inter"),
    ("Helvetica, Arial, sans-serif", "Helvetica"),
    ("Verdana, sans-serif", "Verdana"),
    ("Georgia, serif", "Serif"),
    ("ui-rounded, sans-serif", "Rounded"),
    ("ui-monospace, monospace", "Monospaced"),
];

const HEADINGS: &[(&str, &str)] = &[
    ("", "As the text"),
    ("Inter", "Inter"),
    ("Helvetica, Arial, sans-serif", "Helvetica"),
    ("Verdana, sans-serif", "Verdana"),
    ("Georgia, serif", "Serif"),
    ("ui-rounded, sans-serif", "Rounded"),
    ("ui-monospace, monospace", "Monospaced"),
];

const HOVERS: &[(&str, &str)] = &[
    ("", "Rise a little"),
    ("glow", "Get an edge in the colour"),
    ("scale", "Their pictures grow"),
    ("none", "Stay as they are"),
];

const CORNERS: &[(&str, &str)] = &[
    ("", "Round"),
    ("0px", "Square"),
    ("6px", "Slightly round"),
    ("14px", "A little rounder"),
    ("24px", "Very round"),
];

const CARDS: &[(&str, &str)] = &[
    ("", "Raised"),
    ("bordered", "With a line around"),
    ("flat", "Flat"),
    ("glass", "Glass"),
];

const GAPS: &[(&str, &str)] = &[
    ("0px", "None"),
    ("8px", "Narrow"),
    ("16px", "As usual"),
    ("24px", "Wide"),
    ("40px", "Very wide"),
];

const MADE: &str = "Such as #0f766e; made from the others without it.";

/// Options, and what is there already when it is none of them.
fn options(
    all: &'static [(&'static str, &'static str)],
    now: RwSignal<String>,
) -> Vec<(String, String)> {
    let now = now.get_untracked();
    let known = all.iter().any(|(value, _)| *value == now);
    let given = (!known).then(|| (now.clone(), now));
    let all = all
        .iter()
        .map(|(value, label)| ((*value).to_owned(), (*label).to_owned()));
    all.chain(given).collect()
}

pub fn form(place: Place, draft: Draft, fields: Vec<String>, page: &Record, seen: Look) -> AnyView {
    let is_new = page.value("public_name").is_none();
    view! {
        {content(place, draft, fields, is_new)}
        {parts::inputs(draft.parts)}
        {look(draft)}
        {parts::results(draft.parts)}
        {parts::texts(draft.parts)}
        {searches(draft, seen)}
        {access::form(draft.access)}
        {parts::framing(draft.parts)}
    }
    .into_any()
}

fn content(place: Place, draft: Draft, fields: Vec<String>, is_new: bool) -> AnyView {
    let named = is_new.then(|| {
        let free = availability(place, draft.name);
        view! {
            <Field id="page-name" label="Name in the address" place="public_name" value=draft.name required=true hint="3 to 50 small letters, digits and dashes."/>
            <p role="status" class="muted">{move || verdict(free)}</p>
        }
    });
    let check = |field: String| chosen(field, draft.exposed);
    view! {
        <section class="card form" aria-labelledby="page-content">
            <h2 id="page-content">"Content"</h2>
            {named}
            <Field id="page-title" label="Title" place="display_config.title" value=draft.title required=true/>
            <Field id="page-text" label="Description" place="display_config.description" value=draft.description/>
            <div class="form-row">
                <Field id="page-category" label="Category" place="category" value=draft.category hint="By which lists of pages find it."/>
                <Field id="page-tags" label="Tags" place="tags" value=draft.tags hint="With commas between them, for the same lists."/>
            </div>
            <fieldset class="stack-sm"><legend class="label">"Fields that visitors see"</legend>
                <div class="options">{fields.into_iter().map(check).collect::<Vec<_>>()}</div>
            </fieldset>
        </section>
    }
    .into_any()
}

/// A field, and whether it is among those that are chosen.
fn chosen(field: String, all: RwSignal<Vec<String>>) -> AnyView {
    let (one, same) = (field.clone(), field.clone());
    let checked = Signal::derive(move || all.with(|all| all.contains(&same)));
    let set = move |on: bool| {
        all.update(|all| {
            all.retain(|field| *field != one);
            if on {
                all.push(one.clone());
            }
        });
    };
    view! { <Check label=field checked set/> }.into_any()
}

/// A colour in the browser's own chooser, or in the words of CSS where these are none that it knows.
fn color(
    (id, label): (&'static str, &'static str),
    value: RwSignal<String>,
    place: &'static str,
    hint: &'static str,
) -> AnyView {
    let kind = theme::kind(value);
    view! { <Field id label kind place value hint/> }.into_any()
}

/// The fields to filter by, where the page has filters.
fn filtered(draft: Draft) -> impl Fn() -> Option<AnyView> {
    move || {
        draft.filters.get().then(|| {
            view! {
                <fieldset class="stack-sm"><legend class="label">"Filter by"</legend>
                    <p class="hint">"Without a choice it is the fields whose values documents share."</p>
                    <div class="options">
                        <For each=move || draft.exposed.get() key=|field| field.clone() children=move |field| chosen(field, draft.filtered)/>
                    </div>
                </fieldset>
            }
            .into_any()
        })
    }
}

fn look(draft: Draft) -> AnyView {
    let ground = move || {
        draft.theme.fixed.get().then(|| {
            view! {
                <div class="form-row">
                    {color(("page-ground", "Ground"), draft.theme.ground, "display_config.theme.background_color", "")}
                    {color(("page-ink", "Text"), draft.theme.ink, "display_config.theme.text_color", "")}
                    <Field id="page-secondary" label="Colour of marks" place="display_config.theme.secondary_color" value=draft.theme.secondary hint=MADE/>
                    <Field id="page-surface" label="Colour of cards" place="display_config.theme.surface_color" value=draft.theme.surface hint=MADE/>
                    <Field id="page-muted" label="Colour of lesser text" place="display_config.theme.muted_color" value=draft.theme.muted hint=MADE/>
                    <Field id="page-line" label="Colour of lines" place="display_config.theme.border_color" value=draft.theme.line hint=MADE/>
                </div>
            }
        })
    };
    let columns = move || {
        matches!(draft.arrangement.get().as_str(), "grid" | "masonry").then(|| {
            let usual = (String::new(), "As the template has them".to_owned());
            let numbers = (1..=6).map(|n: u8| (n.to_string(), n.to_string()));
            let all: Vec<_> = std::iter::once(usual).chain(numbers).collect();
            view! {
                <Choice id="page-columns" label="Columns" value=draft.columns options=all/>
                <Choice id="page-gap" label="Room between results" value=draft.gap options=options(GAPS, draft.gap)/>
            }
        })
    };
    let wide = move || {
        let set = move |on: bool| draft.wide.set(on);
        let is_arranged = !draft.arrangement.with(String::is_empty);
        is_arranged.then(|| view! { <Check label="Results over the whole width of the window" checked=draft.wide set/> })
    };
    view! {
        <section class="card form" aria-labelledby="page-look">
            <h2 id="page-look">"Look"</h2>
            <Choice id="page-template" label="Template" value=draft.template options=options(TEMPLATES, draft.template)/>
            {own::form(draft)}
            <div class="form-row">
                {color(("page-primary", "Colour"), draft.theme.primary, "display_config.theme.primary_color", "Made readable on every ground.")}
                <Choice id="page-font" label="Font" value=draft.theme.font options=options(FONTS, draft.theme.font)/>
                <Choice id="page-heading" label="Font of headings" value=draft.theme.heading options=options(HEADINGS, draft.theme.heading)/>
                <Choice id="page-card" label="Cards" value=draft.theme.card options=options(CARDS, draft.theme.card)/>
                <Choice id="page-hover" label="Cards under the pointer" value=draft.theme.hover options=options(HOVERS, draft.theme.hover)/>
                <Choice id="page-radius" label="Corners" value=draft.theme.radius options=options(CORNERS, draft.theme.radius)/>
                <Choice id="page-layout" label="Results" value=draft.arrangement options=options(ARRANGEMENTS, draft.arrangement)/>
                {columns}
            </div>
            {wide}
            {icon::form(draft.icon)}
            <Check label="Ground and text of its own" hint="Without it the page is light or dark as its visitor has it."
                checked=draft.theme.fixed set=move |on: bool| draft.theme.fixed.set(on)/>
            {ground}
            <Check label="Title in large letters" checked=draft.hero set=move |on: bool| draft.hero.set(on)/>
            <Check label="Filters beside the results" checked=draft.filters set=move |on: bool| draft.filters.set(on)/>
            {filtered(draft)}
        </section>
    }
    .into_any()
}

fn searches(draft: Draft, seen: Look) -> AnyView {
    view! {
        <section class="card form" aria-labelledby="page-seo">
            <h2 id="page-seo">"Search engines and links"</h2>
            <Check label="Search engines may list it" checked=draft.listed set=move |on: bool| draft.listed.set(on)/>
            <Field id="seo-title" label="Title there" place="display_config.seo.meta_title" value=draft.meta_title hint="At most 60 letters; the page's title without it."/>
            <Field id="seo-text" label="Text there" place="display_config.seo.meta_description" value=draft.meta_text hint="At most 160 letters; the description without it."/>
            <Field id="seo-image" label="Address of a picture" kind="url" place="display_config.seo.og_image_url" value=draft.image hint="For links in messages."/>
            {parts::seo(draft.parts)}
            {told(draft, seen)}
        </section>
    }
    .into_any()
}

/// Whether the name is still free, asked while it is typed.
fn availability(place: Place, name: RwSignal<String>) -> Load {
    Load::settled(300, move || {
        let name = name.get();
        if name.len() < 3 {
            return None;
        }
        let path = place.path.get();
        let path = format!("{path}/availability?name={}", text::escape(&name));
        Some(place.api.get().get(&path))
    })
}

fn verdict(free: Load) -> String {
    let said = |answer: Record, what: &str| format!("/r/{} is {what}.", answer.text("name"));
    match free.value.get() {
        Some(Ok(answer)) if answer.flag("available") => said(answer, "free"),
        Some(Ok(answer)) => said(answer, "taken"),
        Some(Err(problem)) => {
            let first = problem.notes.into_iter().next();
            first.map_or(problem.message, |(_, what)| what)
        }
        None => "Checking the name.".into(),
    }
}
