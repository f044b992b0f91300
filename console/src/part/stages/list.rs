//! How stages are shown: the list that orders them, and the form of the one that is open.

use leptos::prelude::*;

use super::{Editor, Stage};
use crate::{
    part::{Area, Icon, Toasts, schema},
    record::Record,
    text,
};

/// The stages in their order, with what each did in the last run.
#[component]
pub fn Stages(editor: Editor) -> AnyView {
    // A memo: the text changes with every letter, what is shown only with the toggle.
    let as_json = Memo::new(move |_| editor.json.with(Option::is_some));
    let toggle = move |_| match editor.json.get_untracked() {
        None => {
            let now = untrack(|| editor.value()).unwrap_or_default();
            editor.json.set(Some(text::pretty(&now)));
        }
        // Text that is not JSON stays, with what is wrong below it.
        Some(_) => {
            if let Ok(now) = untrack(|| editor.value()) {
                editor.json.set(None);
                editor.set(&now);
            }
        }
    };
    view! {
        <section class="stack-sm" aria-label="Stages of the draft">
            <div class="row between">
                <h2>"Stages"</h2>
                <button type="button" class="btn small" aria-pressed=move || as_json.get().to_string() on:click=toggle>"Edit as JSON"</button>
            </div>
            {move || (!as_json.get()).then(|| entries(editor))}
        </section>
    }
    .into_any()
}

fn entries(editor: Editor) -> AnyView {
    let chosen = RwSignal::new(String::new());
    let groups = ["filter", "sort", "reduce", "apply", "enrich"].map(|category| {
        let all = editor.kinds.get_value().into_iter();
        let all = all.filter(|one| one.text("category") == category).map(|one| {
            let (id, lacks) = (one.text("stage_id"), one.opt("unavailable_reason"));
            let about = lacks.clone().unwrap_or_else(|| one.text("description"));
            view! { <option value=id.clone() disabled=lacks.is_some()>{format!("{}: {about}", text::words(&id))}</option> }.into_any()
        });
        view! { <optgroup label=category>{all.collect::<Vec<_>>()}</optgroup> }.into_any()
    });
    let add = move |_| editor.add(&chosen.get_untracked());
    let none = move || {
        editor.stages.with(Vec::is_empty).then(|| view! { <p class="muted">"No stage yet. The first one finds documents: feature search, or attribute filter."</p> })
    };
    let held = RwSignal::new(None::<usize>);
    view! {
        {none}
        <ol class="stages"><For each=move || editor.stages.get() key=|one| one.id children=move |one| entry(editor, one, held)/></ol>
        <div class="add-stage">
            <select class="select" aria-label="Stage to add" prop:value=move || chosen.get() on:change=move |event| chosen.set(event_target_value(&event))>
                <option value="">"Choose a stage"</option>{Vec::from(groups)}
            </select>
            <button type="button" class="btn" aria-label="Add stage" disabled=move || chosen.with(String::is_empty) on:click=add><Icon name="plus"/>"Add"</button>
        </div>
    }
    .into_any()
}

/// Moves a stage by one and says so.
fn shift(editor: Editor, stage: Stage, toasts: Toasts, down: bool) {
    if let Some(to) = editor.shift(stage.id, down) {
        toasts.say(format!("{} is now stage {to}", stage.name.get_untracked()));
    }
}

/// A button about one stage.
fn tool(
    icon: &'static str,
    label: impl Fn(String) -> String + Send + Sync + 'static,
    stage: Stage,
    off: impl Fn() -> bool + Send + Sync + 'static,
    act: impl Fn() + 'static,
) -> AnyView {
    view! {
        <button type="button" class="btn ghost icon small" aria-label=move || label(stage.name.get())
            aria-disabled=move || off().to_string() on:click=move |_| act()><Icon name=icon/></button>
    }
    .into_any()
}

/// What may be done to a stage.
fn tools(editor: Editor, stage: Stage) -> AnyView {
    let toasts: Toasts = expect_context();
    let last = move || editor.place(stage.id) + 1 >= editor.stages.with(Vec::len);
    let up = move || shift(editor, stage, toasts, false);
    let down = move || shift(editor, stage, toasts, true);
    let remove = move || {
        editor.remove(stage.id);
        toasts.say(format!("{} was taken out", stage.name.get_untracked()));
    };
    let toggle = move |_| stage.on.update(|on| *on = !*on);
    view! {
        <div class="tools" title="Alt and an arrow key move it, too">
            {tool("up", |name| format!("Move {name} up"), stage, move || editor.place(stage.id) == 0, up)}
            {tool("down", |name| format!("Move {name} down"), stage, last, down)}
            {tool("copy", |name| format!("Duplicate {name}"), stage, || false, move || editor.copy(stage))}
            {tool("close", |name| format!("Take {name} out"), stage, || false, remove)}
            <label class="check"><input type="checkbox" aria-label=move || format!("{} is on", stage.name.get()) prop:checked=move || stage.on.get() on:change=toggle/><span>"On"</span></label>
        </div>
    }
    .into_any()
}

/// What the stage did in the last run, in a line.
fn did(editor: Editor, stage: Stage) -> Option<String> {
    let ran = editor.ran.with(|ran| ran.record(stage.name.get().trim()));
    let time = ran.float("duration_ms").map(text::millis)?;
    let count = |name: &str| text::count(ran.int(name).unwrap_or(0));
    Some(format!(
        "{} in, {} out, {time}",
        count("input_count"),
        count("output_count")
    ))
}

fn entry(editor: Editor, stage: Stage, held: RwSignal<Option<usize>>) -> AnyView {
    let toasts: Toasts = expect_context();
    let kind = stage.kind.get_value();
    let here = move || editor.open.get() == Some(stage.id);
    let keys = move |event: leptos::ev::KeyboardEvent| {
        let down = event.key() == "ArrowDown";
        if event.alt_key() && (down || event.key() == "ArrowUp") {
            event.prevent_default();
            shift(editor, stage, toasts, down);
        }
    };
    let over = move |event: leptos::ev::DragEvent| {
        if held.get_untracked().is_some() {
            event.prevent_default();
        }
    };
    let drop = move |event: leptos::ev::DragEvent| {
        event.prevent_default();
        if let Some(id) = held.get_untracked().filter(|id| *id != stage.id) {
            editor.drop_at(id, untrack(|| editor.place(stage.id)));
        }
        held.set(None);
    };
    let note = move || match stage.on.get() {
        true => did(editor, stage).unwrap_or_else(|| text::words(&stage.kind.get_value())),
        false => "switched off".to_owned(),
    };
    view! {
        <li class="stage" class:here=here class:off=move || !stage.on.get() draggable="true" on:keydown=keys
            on:dragstart=move |_| held.set(Some(stage.id)) on:dragend=move |_| held.set(None) on:dragover=over on:drop=drop>
            <button type="button" class="stage-head" aria-current=move || here().then_some("true") on:click=move |_| editor.open.set(Some(stage.id))>
                <span class="step num">{move || editor.place(stage.id) + 1}</span>
                <span class="grow"><strong>{move || named(&stage.name.get(), &kind)}</strong><span class="sub muted">{note}</span></span>
            </button>
            {move || here().then(|| tools(editor, stage))}
        </li>
    }
    .into_any()
}

/// A stage is called by its name, or by its kind while it has none.
fn named(name: &str, kind: &str) -> String {
    match name.trim() {
        "" => text::words(kind),
        name => name.to_owned(),
    }
}

/// The form of the stage that is open, or all stages as text.
#[component]
pub fn Picked(editor: Editor) -> AnyView {
    let as_json = Memo::new(move |_| editor.json.with(Option::is_some));
    let open = Memo::new(move |_| editor.open.get());
    let form = move || {
        // Read first: whatever there is by now, another choice shows another form.
        let open = open.get()?;
        let all = editor.stages.get_untracked();
        let stage = all.into_iter().find(|one| one.id == open)?;
        Some(form(editor, stage))
    };
    (move || match as_json.get() {
        true => text_of(editor),
        false => form().into_any(),
    })
    .into_any()
}

fn text_of(editor: Editor) -> AnyView {
    let typed = RwSignal::new(editor.json.get_untracked().unwrap_or_default());
    Effect::new(move |_| editor.json.set(Some(typed.get())));
    let fault = move || editor.value().err().map(|problem| problem.message);
    view! {
        <Area id="stages" label="Stages (JSON)" value=typed rows=24/>
        <p role="status" class="problem-line">{fault}</p>
    }
    .into_any()
}

fn form(editor: Editor, stage: Stage) -> AnyView {
    let kind = stage.kind.get_value();
    let about = editor.definition(&kind);
    let shape = about.record("parameter_schema");
    let lacks = about.opt("unavailable_reason");
    let fields = move || {
        stage.form.shape.track();
        schema::fields(stage.form, "", &shape)
    };
    let id = format!("stage-{}-name", stage.id);
    view! {
        <section class="card stack-sm stage-form" aria-labelledby="stage-kind">
            <div><h2 id="stage-kind">{text::words(&kind)}</h2><p class="muted">{about.text("description")}</p></div>
            {lacks.map(|lacks| view! { <p class="notice warn">{lacks}</p> })}
            <div class="field"><label for=id.clone()>"name"</label><input class="input" id=id bind:value=stage.name autocomplete="off" spellcheck="false"/></div>
            {fields}
            {own(stage)}
        </section>
    }
    .into_any()
}

/// What becomes of a search when a stage fails.
const ON_ERROR: [(&str, &str); 2] = [
    ("", "The search fails (default)"),
    ("skip", "The stage is left out"),
];

/// What may be said of any stage, beside its parameters.
fn own(stage: Stage) -> AnyView {
    let now = Record(stage.rest.get_untracked());
    let field = |member: &'static str, label: &'static str, hint: &'static str| {
        let id = format!("stage-{}-{member}", stage.id);
        let set = move |event| stage.put(member, event_target_value(&event).trim());
        view! {
            <div class="field"><label for=id.clone()>{label}</label>
                <input class="input" id=id list="templates" prop:value=now.text(member) autocomplete="off" spellcheck="false" on:input=set/>
                <span class="hint">{hint}</span></div>
        }
        .into_any()
    };
    let set_policy = move |event| stage.put("on_error", &event_target_value(&event));
    let held = now.text("on_error");
    let held = match held.as_str() {
        "skip" | "continue" | "ignore" => "skip",
        _ => "",
    };
    let policies = ON_ERROR.map(|(value, label)| {
        view! { <option value=value selected={held == value}>{label}</option> }.into_any()
    });
    let id = format!("stage-{}-on-error", stage.id);
    view! {
        <details class="more"><summary>"When it fails, and what it is called"</summary>
            <div class="form-grid">
                <div class="field"><label for=id.clone()>"When it fails"</label>
                    <select class="select" id=id on:change=set_policy>{Vec::from(policies)}</select></div>
                {field("output_alias", "Alias of what it tells", "Templates read it as {{CONTEXT.name}}.")}
                {field("batch_size", "Documents at once", "Left empty, as the stage does by itself.")}
            </div>
        </details>
    }
    .into_any()
}
