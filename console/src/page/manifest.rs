//! The configuration of a namespace as one file, a manifest: written, checked, compared with what is there, and applied.

mod asked;
mod shown;

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::{
    api::Problem,
    load::{Change, Load},
    part::{schema::Form, *},
    record::Record,
    route::param,
    session::{Session, use_session},
    text,
};

/// The id of the text.
const TEXT: &str = "manifest";

/// The form in which a manifest is described in words.
const DESCRIBE: &str = "manifest/describe";

/// The most that the server takes.
const MOST_BYTES: f64 = 512.0 * 1024.0;

/// The text that is worked on, and what was told of it.
#[derive(Clone, Copy)]
struct Draft {
    session: Session,
    text: RwSignal<String>,
    /// The values of its parameters.
    values: Form,
    change: Change,
    found: RwSignal<Option<Record>>,
}

impl Draft {
    fn new() -> Self {
        let values = Form::plain("parameter");
        values.value.set(json!({}));
        Self {
            session: use_session(),
            text: RwSignal::new(String::new()),
            values,
            change: Change::new(),
            found: RwSignal::new(None),
        }
    }

    /// Asks this of the text, and hands on what was told.
    fn ask(self, what: &'static str, done: impl FnOnce(&Record) + 'static) {
        let text = self.text.get_untracked();
        if text.trim().is_empty() {
            let message = "there is no text yet: paste one, drop a file, or edit what is there";
            self.change.refuse(message);
            return;
        }
        let values = self.values.value.get_untracked();
        let call = asked::ask(self.session.api(), what, text, values);
        self.change.run(call, move |found| {
            let _ = self.found.try_set(Some(found.clone()));
            done(&found);
        });
    }
}

pub fn manifest() -> AnyView {
    let (session, ns) = (use_session(), param("ns"));
    let written = Load::new(move || {
        let id = text::escape(&ns.get());
        let path = format!("/v1/manifest/export?namespace_id={id}");
        session.api().text(&path)
    });
    let yaml = Signal::derive(move || match written.good() {
        Some(one) => shown::whole(&one),
        None => String::new(),
    });
    let draft = Draft::new();
    let lacks = move || yaml.with(String::is_empty);
    let save = move |_| {
        let name = format!("{}.yaml", ns.get_untracked());
        download(&name, "application/yaml", &yaml.get_untracked());
    };
    let edit = move |_| {
        draft.text.set(yaml.get_untracked());
        spawn_local(async {
            // Once the text is in its field.
            TimeoutFuture::new(0).await;
            to_line(TEXT, 1);
        });
    };
    let file = |one: Record| {
        let yaml = shown::whole(&one);
        view! { <pre class="code-block" role="region" tabindex="0" aria-label="The namespace as YAML">{yaml}</pre> }.into_any()
    };
    view! {
        <Head title="Configuration".to_owned() text="What this namespace is made of, as one file: to keep, to compare, and to apply as often as one likes."/>
        <section class="card stack" aria-labelledby="written">
            <div class="row between">
                <h2 id="written">"As it is now"</h2>
                <div class="row">
                    <Copy text=yaml label="Copy"/>
                    <button type="button" class="btn" disabled=lacks on:click=save>"Download as YAML"</button>
                    <button type="button" class="btn" disabled=lacks on:click=edit>"Edit a copy"</button>
                </div>
            </div>
            <div class="as-is">{loaded(written, waiting(8), file)}</div>
        </section>
        {changing(draft, written)}
    }
    .into_any()
}

/// The text, and what can be done with it.
fn changing(draft: Draft, written: Load) -> AnyView {
    let toasts: Toasts = expect_context();
    let (confirm, describe) = (RwSignal::new(false), RwSignal::new(false));
    let marked = Signal::derive(move || {
        let lines = |found: &Option<Record>| found.as_ref().map(asked::lines);
        draft.found.with(lines).unwrap_or_default()
    });
    let button = move |what: &'static str, label: &'static str| {
        view! { <button type="button" class="btn" on:click=move |_| draft.ask(what, |_| ())>{label}</button> }.into_any()
    };
    // What is about to be done is compared first, and named before it is done.
    let plan = move |_| {
        draft.ask(asked::DIFF, move |found| {
            if asked::changes(found) {
                let _ = confirm.try_set(true);
            }
        });
    };
    let chosen = Callback::new(move |files: Vec<Dropped>| read(draft, toasts, files));
    let generate = move |body: Value| {
        let words = text::escape(&Record(body).text("description"));
        let path = format!("/v1/manifest/generate?description={words}");
        draft.session.api().post(&path, &json!({}))
    };
    let generated = move |made: Record| draft.text.set(made.text("manifest"));
    view! {
        <section class="card stack" aria-labelledby="changing">
            <h2 id="changing">"Change it by a file"</h2>
            <DropZone label="Choose a file" text="Drop a manifest here, YAML or JSON" accept=".yaml,.yml,.json" chosen>
                <button type="button" class="btn" on:click=move |_| describe.set(true)><Icon name="spark"/>"Describe it in words"</button>
            </DropZone>
            <Source id=TEXT label="Manifest" value=draft.text marked hint="What it does not say stays as it is. It may describe other namespaces, too."/>
            {parameters(draft)}
            <div class="row" role="group" aria-label="What to do with the manifest" aria-busy=move || draft.change.busy.get().to_string()>
                {button(asked::VALIDATE, "Validate")}
                {button(asked::LINT, "Lint")}
                {button(asked::DIFF, "What would change")}
                <button type="button" class="btn primary" on:click=plan>"Apply"</button>
            </div>
            {refusal(draft.change)}
            {told(draft)}
        </section>
        <Fill open=describe title="Describe it in words".to_owned() label="Write it" form=Form::plain("describe") schema=DESCRIBE
            start=Callback::new(|()| json!({})) send=Callback::new(generate) done=Callback::new(generated)/>
        {confirmed(draft, confirm, written)}
    }
    .into_any()
}

/// Takes the text of a file.
fn read(draft: Draft, toasts: Toasts, files: Vec<Dropped>) {
    let Some(Dropped { file, path }) = files.into_iter().next() else {
        return;
    };
    if file.size() > MOST_BYTES {
        draft.change.refuse("a manifest has at most 512 KB");
        return;
    }
    spawn_local(async move {
        let read = JsFuture::from(file.text()).await.ok();
        match read.and_then(|text| text.as_string()) {
            Some(text) => {
                // Lines of the field end so, whatever those of the file do.
                let _ = draft.text.try_set(text.replace("\r\n", "\n"));
                toasts.say(format!("{path} is read"));
            }
            None => {
                let problem = Problem::local("the file could not be read");
                let _ = draft.change.problem.try_set(Some(problem));
            }
        }
    });
}

/// Fields for what the manifest asks for, once the server told what that is.
fn parameters(draft: Draft) -> AnyView {
    let wanted = Memo::new(move |_| {
        let fields = |found: &Option<Record>| found.as_ref().map(asked::parameters);
        draft.found.with(fields)
    });
    (move || {
        let wanted = wanted.get()?;
        if wanted.record("properties").members().is_empty() {
            return None;
        }
        let fields = untrack(|| schema::fields(draft.values, "", &wanted));
        Some(
            view! { <fieldset class="group"><legend>"Parameters"</legend>{fields}</fieldset> }
                .into_any(),
        )
    })
    .into_any()
}

/// What was told of the text, first in a sentence that is read out.
fn told(draft: Draft) -> AnyView {
    let sentence = Memo::new(move |_| {
        let sentence = |found: &Option<Record>| found.as_ref().map(shown::sentence);
        draft.found.with(sentence)
    });
    let class = move || sentence.get().map_or("muted", |(class, _)| class);
    let said = move || match sentence.get() {
        Some((_, said)) => said,
        None => "Nothing was asked about it yet.".to_owned(),
    };
    let old = move || {
        let asked = draft.found.with(|found| Some(found.as_ref()?.text("text")));
        let is_old = asked.is_some_and(|asked| draft.text.with(|text| asked != *text));
        is_old.then(|| view! { <p class="muted">"The text was changed since."</p> }.into_any())
    };
    let outcome = move || draft.found.get().map(|found| shown::outcome(&found));
    view! { <p role="status" class=class>{said}</p>{old}{outcome} }.into_any()
}

/// Names what is about to be done, and does it.
fn confirmed(draft: Draft, open: RwSignal<bool>, written: Load) -> AnyView {
    let (toasts, change): (Toasts, _) = (expect_context(), Change::new());
    let submit = Callback::new(move |()| {
        let Some(planned) = draft.found.get_untracked() else {
            return;
        };
        let call = asked::apply(draft.session.api(), planned);
        change.run(call, move |found| {
            open.set(false);
            toasts.say(match found.record("told").flag("success") {
                true => "The manifest is applied",
                false => "The manifest is applied in part",
            });
            draft.found.set(Some(found));
            draft.session.namespaces_changed.update(|n| *n += 1);
            written.reload();
        });
    });
    let plan = move || {
        let plan = |found: &Option<Record>| found.as_ref().map(shown::plan);
        draft.found.with(plan)
    };
    view! {
        <Ask open title="Apply the manifest?".to_owned() class="wide" label="Apply" change submit>
            <p>"This is made and changed now, in the order in which it is needed. Nothing is removed."</p>
            {plan}
        </Ask>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_asks_for_what_is_sent() {
        let fields = schema::named(DESCRIBE).record("properties");
        assert!(fields.record("description").flag("must"));
    }
}
