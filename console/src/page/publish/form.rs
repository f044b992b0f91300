//! What can be said of a page.

use leptos::prelude::*;

use super::{
    Place, access,
    draft::Draft,
    icon, own, parts,
    shown::{Look, told},
    theme::{self, Theme},
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
    vec![
        content(place, draft, fields, is_new),
        parts::inputs(draft.parts),
        look(draft),
        parts::results(draft.parts),
        parts::texts(draft.parts),
        searches(draft, seen),
        access::form(draft.access),
        parts::framing(draft.parts),
    ]
    .into_any()
}

/// A part of the form under its head. Lists of fields that are all views alike are one piece of code; written out, each
/// would be its own.
pub fn section(id: &'static str, title: &'static str, fields: Vec<AnyView>) -> AnyView {
    view! {
        <section class="card form" aria-labelledby=id>
            <h2 id=id>{title}</h2>
            {fields}
        </section>
    }
    .into_any()
}

/// Fields beside one another.
pub fn beside(fields: Vec<AnyView>) -> AnyView {
    view! { <div class="form-row">{fields}</div> }.into_any()
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
    let exposed: Vec<_> = fields.into_iter().map(check).collect();
    let exposed = view! {
        <fieldset class="stack-sm"><legend class="label">"Fields that visitors see"</legend>
            <div class="options">{exposed}</div>
        </fieldset>
    };
    section("page-content", "Content", vec![
        named.into_any(),
        view! { <Field id="page-title" label="Title" place="display_config.title" value=draft.title required=true/> }.into_any(),
        entry(("page-text", "Description"), draft.description, "display_config.description", ""),
        beside(vec![
            entry(("page-category", "Category"), draft.category, "category", "By which lists of pages find it."),
            entry(("page-tags", "Tags"), draft.tags, "tags", "With commas between them, for the same lists."),
        ]),
        exposed.into_any(),
    ])
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
    named: (&'static str, &'static str),
    value: RwSignal<String>,
    place: &'static str,
    hint: &'static str,
) -> AnyView {
    typed(named, theme::kind(value), value, place, hint)
}

/// A line of text.
pub fn entry(
    named: (&'static str, &'static str),
    value: RwSignal<String>,
    place: &'static str,
    hint: &'static str,
) -> AnyView {
    typed(named, "text", value, place, hint)
}

/// A line of a kind, under its name.
pub fn typed(
    (id, label): (&'static str, &'static str),
    kind: &'static str,
    value: RwSignal<String>,
    place: &'static str,
    hint: &'static str,
) -> AnyView {
    view! { <Field id label kind place value hint/> }.into_any()
}

/// A box that is ticked.
pub fn tick(label: &'static str, value: RwSignal<bool>, hint: &'static str) -> AnyView {
    view! { <Check label hint checked=value set=move |on: bool| value.set(on)/> }.into_any()
}

/// One of a few, or what is there already.
fn pick(
    (id, label): (&'static str, &'static str),
    value: RwSignal<String>,
    all: &'static [(&'static str, &'static str)],
) -> AnyView {
    view! { <Choice id label value options=options(all, value)/> }.into_any()
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

/// Colours of the page's own.
fn colors(theme: Theme) -> AnyView {
    const AT: [&str; 6] = [
        "display_config.theme.background_color",
        "display_config.theme.text_color",
        "display_config.theme.secondary_color",
        "display_config.theme.surface_color",
        "display_config.theme.muted_color",
        "display_config.theme.border_color",
    ];
    beside(vec![
        color(("page-ground", "Ground"), theme.ground, AT[0], ""),
        color(("page-ink", "Text"), theme.ink, AT[1], ""),
        entry(
            ("page-secondary", "Colour of marks"),
            theme.secondary,
            AT[2],
            MADE,
        ),
        entry(
            ("page-surface", "Colour of cards"),
            theme.surface,
            AT[3],
            MADE,
        ),
        entry(
            ("page-muted", "Colour of lesser text"),
            theme.muted,
            AT[4],
            MADE,
        ),
        entry(("page-line", "Colour of lines"), theme.line, AT[5], MADE),
    ])
}

fn columns(draft: Draft) -> AnyView {
    let usual = (String::new(), "As the template has them".to_owned());
    let numbers = (1..=6).map(|n: u8| (n.to_string(), n.to_string()));
    let all: Vec<_> = std::iter::once(usual).chain(numbers).collect();
    vec![
        view! { <Choice id="page-columns" label="Columns" value=draft.columns options=all/> }
            .into_any(),
        pick(("page-gap", "Room between results"), draft.gap, GAPS),
    ]
    .into_any()
}

fn look(draft: Draft) -> AnyView {
    let theme = draft.theme;
    let ground = move || theme.fixed.get().then(|| colors(theme));
    let columns = move || {
        let arrangement = draft.arrangement.get();
        matches!(arrangement.as_str(), "grid" | "masonry").then(|| columns(draft))
    };
    let wide = move || {
        let is_arranged = !draft.arrangement.with(String::is_empty);
        is_arranged.then(|| tick("Results over the whole width of the window", draft.wide, ""))
    };
    let primary = "display_config.theme.primary_color";
    section(
        "page-look",
        "Look",
        vec![
            pick(("page-template", "Template"), draft.template, TEMPLATES),
            own::form(draft).into_any(),
            beside(vec![
                color(
                    ("page-primary", "Colour"),
                    theme.primary,
                    primary,
                    "Made readable on every ground.",
                ),
                pick(("page-font", "Font"), theme.font, FONTS),
                pick(
                    ("page-heading", "Font of headings"),
                    theme.heading,
                    HEADINGS,
                ),
                pick(("page-card", "Cards"), theme.card, CARDS),
                pick(
                    ("page-hover", "Cards under the pointer"),
                    theme.hover,
                    HOVERS,
                ),
                pick(("page-radius", "Corners"), theme.radius, CORNERS),
                pick(("page-layout", "Results"), draft.arrangement, ARRANGEMENTS),
                columns.into_any(),
            ]),
            wide.into_any(),
            icon::form(draft.icon),
            tick(
                "Ground and text of its own",
                theme.fixed,
                "Without it the page is light or dark as its visitor has it.",
            ),
            ground.into_any(),
            tick("Title in large letters", draft.hero, ""),
            tick("Filters beside the results", draft.filters, ""),
            filtered(draft).into_any(),
        ],
    )
}

fn searches(draft: Draft, seen: Look) -> AnyView {
    let title = "At most 60 letters; the page's title without it.";
    let text = "At most 160 letters; the description without it.";
    section(
        "page-seo",
        "Search engines and links",
        vec![
            tick("Search engines may list it", draft.listed, ""),
            entry(
                ("seo-title", "Title there"),
                draft.meta_title,
                "display_config.seo.meta_title",
                title,
            ),
            entry(
                ("seo-text", "Text there"),
                draft.meta_text,
                "display_config.seo.meta_description",
                text,
            ),
            typed(
                ("seo-image", "Address of a picture"),
                "url",
                draft.image,
                "display_config.seo.og_image_url",
                "For links in messages.",
            ),
            parts::seo(draft.parts),
            told(draft, seen),
        ],
    )
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
