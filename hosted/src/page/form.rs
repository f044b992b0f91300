//! The search form, complete without script: a plain GET form, or where it takes files a POST form that leads to the
//! same addresses unless there is a file.

use leptos::prelude::*;
use loupe_wire::RetrieverInputSchemaFieldType as Kind;

use super::{
    input::{CHOOSE, Input, accepts, is_boxes, is_choice, is_text},
    query::Query,
};

/// Boxes that are all to be seen at once; more of them scroll.
const MANY: usize = 24;

/// The form; `remembers` lets the script keep on the visitor's machine what was searched for, `tells` lets it show the stages of
/// a search.
pub fn form(query: &Query, autofocus: bool, remembers: bool, tells: bool) -> AnyView {
    let main = query.inputs.iter().position(is_text);
    let field = main.map(|index| main_field(&query.inputs[index], autofocus));
    // Nobody types the id of a document: such an input is filled in by the links of the cards.
    let typed = |input: &Input| input.config.field_schema.r#type != Kind::DocumentReference;
    // A page has to be asked something: its one input, where it has no other.
    let alone = main.is_none() && query.inputs.iter().filter(|input| typed(input)).count() == 1;
    let rest: Vec<_> = query
        .inputs
        .iter()
        .enumerate()
        .filter(|(index, input)| Some(*index) != main && typed(input))
        .map(|(_, input)| control(input, alone))
        .collect();
    let has_rest = !rest.is_empty();
    // A new search keeps the filters chosen.
    let kept = query
        .filters
        .iter()
        .flat_map(|(field, values)| {
            values
                .iter()
                .map(move |value| (format!("f.{field}"), value.clone()))
        })
        .map(|(name, value)| view! { <input type="hidden" name=name value=value/> })
        .collect_view();
    let button = view! { <button class="button primary" type="submit">"Search"</button> };
    let (method, enctype) = if query.takes_files() {
        ("post", Some("multipart/form-data"))
    } else {
        ("get", None)
    };
    let remembers = remembers.then_some("");
    let told = tells.then_some("");
    view! {
        <search>
            <form class="search" method=method enctype=enctype action=query.path.clone() data-search
                data-remembers=remembers data-progress=told>
                <div class="bar">{field}{button}</div>
                {main.and_then(|index| note(&query.inputs[index]))}
                {has_rest.then(|| view! { <div class="more">{rest}</div> })}
                {kept}
                {tells.then(|| view! { <details class="stages scripted"><summary>"Stages"</summary><ol></ol></details> })}
            </form>
        </search>
    }
    .into_any()
}

/// What the script knows a page by whose owner shows no form: its filters and its pages come as they do on others.
pub fn unseen(query: &Query) -> AnyView {
    view! { <form hidden action=query.path.clone() data-search></form> }.into_any()
}

/// Suggestions of every input, as links.
pub fn suggestions(query: &Query) -> Option<AnyView> {
    let links: Vec<_> = query
        .inputs
        .iter()
        // A list shows by itself what there is.
        .filter(|input| !is_choice(&input.config))
        .flat_map(|input| {
            input
                .config
                .suggestions
                .iter()
                .flatten()
                .take(8)
                .map(move |text| (query.only(input, text), text.clone()))
        })
        .map(|(address, text)| view! { <li><a class="chip" href=address>{text}</a></li> })
        .collect();
    (!links.is_empty()).then(|| view! {
        <nav class="suggestions" aria-label="Suggestions"><span class="hint">"Try"</span><ul>{links}</ul></nav>
    }.into_any())
}

/// The id of the list of what the browser offers in an input that is typed.
fn datalist_id(input: &Input) -> Option<String> {
    let some = input.config.suggestions.as_ref();
    some.filter(|some| !some.is_empty())
        .map(|_| format!("{}-suggestions", id(input)))
}

/// The suggestions of such an input: the script, where there is one, offers them in its own way.
fn datalist(input: &Input) -> Option<AnyView> {
    let list = datalist_id(input)?;
    let options = input.config.suggestions.iter().flatten();
    let options = options
        .map(|text| view! { <option value=text.clone()></option> })
        .collect_view();
    Some(view! { <datalist id=list>{options}</datalist> }.into_any())
}

fn id(input: &Input) -> String {
    format!("in-{}", input.param)
}

fn main_field(input: &Input, autofocus: bool) -> AnyView {
    let label = input.config.label.clone();
    let placeholder = input
        .config
        .placeholder
        .clone()
        .unwrap_or_else(|| label.clone());
    let described = described(input);
    let field = match input.config.input_type.as_str() {
        "textarea" => area(input, Some(placeholder), autofocus),
        _ => view! {
            <input class="entry" type="search" id=id(input) name=input.param.clone() value=input.text()
                placeholder=placeholder required=input.config.required maxlength="2000" autocomplete="off"
                enterkeyhint="search" autofocus=autofocus aria-describedby=described list=datalist_id(input)
                data-default=input.default_text() aria-invalid=input.error.map(|_| "true")/>
            {datalist(input)}
        }
        .into_any(),
    };
    view! {
        <label class="sr" for=id(input)>{label}</label>
        <svg class="glass" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
            <circle cx="8.5" cy="8.5" r="5.5" fill="none" stroke="currentColor" stroke-width="1.6"></circle>
            <path d="m13 13 4.2 4.2" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"></path>
        </svg>
        {field}
    }
    .into_any()
}

/// A field for words of several lines.
fn area(input: &Input, placeholder: Option<String>, autofocus: bool) -> AnyView {
    let invalid = input.error.map(|_| "true");
    view! {
        <textarea class="entry" rows="3" id=id(input) name=input.param.clone() placeholder=placeholder maxlength="2000"
            required=input.config.required autofocus=autofocus aria-describedby=described(input)
            data-default=input.default_text() aria-invalid=invalid>{format!("\n{}", input.text())}</textarea>
    }
    .into_any()
}

/// What is wrong with an input, else what it is for.
fn said(input: &Input) -> Option<String> {
    let choose = || (is_boxes(input) && input.config.required).then(|| CHOOSE.to_owned());
    let several = || {
        let is_one = input.is_typed_list() && accepts(input).is_none();
        is_one.then(|| "Put commas between several.".to_owned())
    };
    // Browsers ask for a time without a zone.
    let drawn = input.config.input_type.as_str();
    let is_time = matches!(drawn, "datetime" | "datetime-local");
    let zone = || is_time.then(|| "The time is that of UTC.".to_owned());
    let wrong = input.error.map(str::to_owned);
    wrong
        .or_else(|| input.config.helper_text.clone())
        .or_else(choose)
        .or_else(several)
        .or_else(zone)
}

fn described(input: &Input) -> Option<String> {
    said(input).map(|_| format!("{}-note", id(input)))
}

fn note(input: &Input) -> Option<AnyView> {
    let (id, text) = (described(input)?, said(input)?);
    let class = if input.error.is_some() {
        "note bad"
    } else {
        "note"
    };
    Some(view! { <p class=class id=id>{text}</p> }.into_any())
}

fn control(input: &Input, alone: bool) -> AnyView {
    if let Some(accepted) = accepts(input) {
        return file(input, accepted, alone);
    }
    let label = input.config.label.clone();
    let field = match input.config.input_type.as_str() {
        "boolean" | "checkbox" | "toggle" => return tick(input),
        "select" if !input.options.is_empty() => select(input),
        "multiselect" if is_boxes(input) => return choices(input),
        "number" | "range" | "slider" => plain(input, "number", Some("any")),
        "date" => plain(input, "date", None),
        "datetime" | "datetime-local" => plain(input, "datetime-local", None),
        "textarea" => area(input, input.config.placeholder.clone(), false),
        _ => plain(input, "text", None),
    };
    view! {
        <div class="control">
            <label for=id(input)>{label}</label>
            {field}
            {note(input)}
        </div>
    }
    .into_any()
}

/// A box to tick. A form says nothing of one that is not ticked: where it is ticked by itself, it says that it was there.
fn tick(input: &Input) -> AnyView {
    let is_ticked = input.held().first().is_some_and(|value| value == "true");
    let by_itself = input.is_ticked();
    let tick = view! {
        <label class="tick">
            {by_itself.then(|| view! { <input type="hidden" name=input.param.clone() value=""/> })}
            <input type="checkbox" name=input.param.clone() value="true" checked=is_ticked
                data-ticked=by_itself.then_some("") data-else=by_itself.then_some("false")
                aria-describedby=described(input) aria-invalid=input.error.map(|_| "true")/>
            {input.config.label.clone()}
        </label>
    };
    match note(input) {
        Some(note) => view! { <div class="control">{tick}{note}</div> }.into_any(),
        None => tick.into_any(),
    }
}

/// An input for a file. Alone in its form it has to be filled in; beside words it need not.
fn file(input: &Input, accepted: &'static str, alone: bool) -> AnyView {
    let noun = if accepted == "image/*" {
        "picture"
    } else {
        "file"
    };
    let note = input
        .error
        .map(str::to_owned)
        .or_else(|| Some(format!("Searched with {}.", input.file.as_ref()?.name)))
        .or_else(|| input.config.helper_text.clone());
    let hint = note.is_none().then(|| {
        // The browser alone takes what is dropped on the input; pasting is the script's.
        view! {
            {format!("Choose a {noun}, or drop ")}<span class="scripted">"or paste "</span>"it here."
        }
    });
    let class = if input.error.is_some() {
        "note bad"
    } else {
        "note"
    };
    let note_id = format!("{}-note", id(input));
    let accept = (!accepted.is_empty()).then_some(accepted);
    let invalid = input.error.map(|_| "true");
    view! {
        <div class="control file">
            <label for=id(input)>{input.config.label.clone()}</label>
            <input class="entry" type="file" id=id(input) name=input.param.clone() accept=accept required=alone
                aria-describedby=note_id.clone() aria-invalid=invalid/>
            <p class=class id=note_id>{note}{hint}</p>
        </div>
    }
    .into_any()
}

fn plain(input: &Input, kind: &'static str, step: Option<&'static str>) -> AnyView {
    let invalid = input.error.map(|_| "true");
    let now = spelled(kind, input.text());
    let default = input.default_text().map(|text| spelled(kind, text));
    view! {
        <input class="entry" type=kind step=step id=id(input) name=input.param.clone() value=now
            placeholder=input.config.placeholder.clone() required=input.config.required aria-describedby=described(input)
            list=datalist_id(input) data-default=default aria-invalid=invalid/>
        {datalist(input)}
    }
    .into_any()
}

/// A moment as browsers take it in an input of this kind: a day, or a day and a time without a zone.
fn spelled(kind: &str, text: String) -> String {
    let most = match kind {
        "date" => 10,
        "datetime-local" => 16,
        _ => return text,
    };
    text.chars().take(most).collect()
}

fn select(input: &Input) -> AnyView {
    let any = input
        .config
        .placeholder
        .clone()
        .unwrap_or_else(|| "Any".to_owned());
    let options = input.options.iter()
        .map(|value| view! { <option value=value.clone() selected=input.held().contains(value)>{value.clone()}</option> })
        .collect_view();
    view! {
        <select class="entry" id=id(input) name=input.param.clone() required=input.config.required
            data-default=input.default_text() aria-describedby=described(input) aria-invalid=input.error.map(|_| "true")>
            <option value="">{any}</option>
            {options}
        </select>
    }
    .into_any()
}

/// Boxes to tick. What is sent of them is only what is ticked: where one has to be, a form says of itself that it had them, and
/// the script sees to it before.
fn choices(input: &Input) -> AnyView {
    let required = input.config.required;
    let boxes = input.options.iter()
        .map(|value| view! {
            <label class="tick">
                <input type="checkbox" name=input.param.clone() value=value.clone() checked=input.held().contains(value)
                    data-ticked=input.default.contains(value).then_some("")/>
                {value.clone()}
            </label>
        })
        .collect_view();
    let class = if input.options.len() > MANY {
        "boxes many"
    } else {
        "boxes"
    };
    view! {
        <fieldset class="control choices" aria-describedby=described(input) data-required=required.then_some("")>
            <legend>{input.config.label.clone()}</legend>
            {required.then(|| view! { <input type="hidden" name=input.param.clone() value=""/> })}
            <div class=class>{boxes}</div>
            {note(input)}
        </fieldset>
    }
    .into_any()
}
