//! What an app served and serves: deploys come in, versions are switched.

use leptos::prelude::*;
use serde_json::json;
use web_sys::File;

use super::{super::upload::put, changes::Compared, one::Shown};
use crate::{
    api::{Answer, Api, Problem},
    load::{Change, Load, Query},
    part::*,
    record::Record,
    session::use_session,
};

const COLUMNS: &[Column] = &[
    Column("Version", ""),
    Column("Serves", ""),
    Column("Files", "num"),
    Column("Made", ""),
    Column("", "actions many"),
];

const NONE: &str = "Begin with the starter: a search page with sign-in.";

/// The address of the starter's files, which the page was told.
fn starter_address() -> String {
    let root = document().document_element();
    let name = root.and_then(|root| root.get_attribute("data-starter"));
    format!("/assets/{}", name.unwrap_or_default())
}

pub fn versions(shown: Shown) -> AnyView {
    let session = use_session();
    let deploy = Query::new("deploy");
    let (change, share) = (Change::new(), RwSignal::new(0.0));
    let environment = RwSignal::new("production".to_owned());
    let rows = Rows::new(shown.load);
    let compared = Compared::new(shown);
    provide_context(rows);
    provide_context(shown);
    provide_context(compared);
    let begun = move |made: Record| deploy.set(&made.text("deploy_id"));
    let upload = Callback::new(move |files: Vec<Dropped>| {
        if let Some(Dropped { file, .. }) = files.into_iter().next() {
            let _ = share.try_set(0.0);
            let (path, to) = (shown.path.get_untracked(), environment.get_untracked());
            change.run(send(session.api(), path, file, to, share), begun);
        }
    });
    let begin = move |_| {
        let (path, to) = (shown.path.get_untracked(), environment.get_untracked());
        change.run(starter(session.api(), path, to), begun);
    };
    let places = vec![
        ("production".to_owned(), "Visitors".to_owned()),
        ("staging".to_owned(), "Staging".to_owned()),
    ];
    let sending = move || {
        let known = change.busy.get() && share.get() > 0.0;
        known.then(|| view! { <Progress share label="Upload of the bundle"/> })
    };
    let empty = move || view! { <Empty icon="app" title="Nothing deployed yet" text=NONE/> };
    view! {
        <DropZone label="Choose a zip archive" text="Drop what your build made, as a zip archive" accept=".zip" chosen=upload>
            <button type="button" class="btn" aria-busy=move || change.busy.get().to_string() on:click=begin><Icon name="spark"/>"Deploy the starter"</button>
        </DropZone>
        <div class="row filters"><Choice id="environment" label="A deploy goes to" value=environment options=places/></div>
        {sending}
        {refusal(change)}
        <div class="row between"><h2>"Versions"</h2><div class="row">{move || switches(shown, rows)}</div></div>
        {refusal(rows.change)}
        <Listing load=shown.load label="Versions" columns=COLUMNS row empty=ViewFn::from(empty) offset=None/>
        // At the end: it grows with its log, and moves nothing.
        {move || (!deploy.value.get().is_empty()).then(|| progress(shown, deploy))}
        {compared.dialog()}
    }
    .into_any()
}

/// A bundle on its way to being a deploy.
async fn send(
    api: Api,
    path: String,
    file: File,
    environment: String,
    share: RwSignal<f64>,
) -> Result<Record, Problem> {
    let path = format!("{path}/deploy");
    let name = file.name();
    let place = api
        .post(&format!("{path}/upload-url"), &json!({"filename": name}))
        .await?;
    put(&place.text("upload_url"), "application/zip", &file, share).await?;
    let body = json!({"bundle_s3_key": place.text("bundle_s3_key"), "environment": environment, "message": name});
    api.post(&path, &body).await
}

async fn starter(api: Api, path: String, environment: String) -> Result<Record, Problem> {
    let files = api.get(&starter_address()).await?;
    let body =
        json!({"source_files": files.0, "environment": environment, "message": "the starter"});
    api.post(&format!("{path}/deploy"), &body).await
}

/// Going back, and from staging to everybody, where there is a way.
fn switches(shown: Shown, rows: Rows) -> AnyView {
    let session = use_session();
    let one = shown.load.good().unwrap_or_default();
    let serves = |name: &str| one.record("environments").record(name).int("version");
    let (live, staged) = (serves("production"), serves("staging"));
    let title = one.record("meta").text("title");
    let call = move |verb: &'static str, said: &'static str, what: &'static str| {
        rows.call(verb, &title, said, move || {
            let path = format!("{}/{what}", shown.path.get_untracked());
            session.api().post(&path, &json!({}))
        })
    };
    let promote = (staged.is_some() && staged != live)
        .then(|| call("Promote staging", "Promoted", "promote"));
    let production = one.record("environments").record("production");
    let back = production
        .int("previous_version")
        .is_some()
        .then(|| call("Roll back", "Rolled back", "rollback"));
    view! { {promote}{back} }.into_any()
}

fn row(one: Record) -> AnyView {
    let (session, rows): (_, Rows) = (use_session(), expect_context());
    let (shown, compared): (Shown, Compared) = (expect_context(), expect_context());
    let number_of = one.int("version").unwrap_or(0);
    let title = format!("Version {number_of}");
    let serves = one.record("is_active");
    let live = serves.flag("production");
    let app = shown.load.good().unwrap_or_default();
    let places = ["production", "staging"].into_iter();
    let places = places.filter(|place| serves.flag(place)).map(|place| match place {
        "staging" => {
            let url = address(&app, place);
            view! { <a href=url target="_blank" rel="noopener" aria-label="Open staging">{badge(place)}</a>" " }.into_any()
        }
        place => badge(place),
    });
    let at =
        move |what: &str| format!("{}/versions/{number_of}/{what}", shown.path.get_untracked());
    let restore = (!live).then(|| {
        rows.call("Serve", &title, "Served", move || {
            session.api().post(&at("restore"), &json!({}))
        })
    });
    let take = move || {
        let call = session.api().get(&at("download"));
        rows.change.run(call, |made| {
            let _ = window().location().set_href(&made.text("download_url"));
        });
    };
    let preview = preview(&app, number_of).map(|url| {
        view! { <a class="btn small" href=url target="_blank" rel="noopener" aria-label=format!("Preview {title}")>"Preview"</a>" " }
    });
    let buttons = view! { {compared.button(number_of, &title)}{preview}{restore}{press("Download", &title, Box::new(take))} };
    line(vec![
        titled(None, title.clone(), one.text("message")),
        cell("", places.collect::<Vec<_>>().into_any()),
        number(one.int("files")),
        cell("nowrap", when(one.opt("deployed_at"))),
        cell("actions many", buttons.into_any()),
    ])
}

/// Where what an environment serves is to be seen.
fn address(app: &Record, environment: &str) -> String {
    match environment {
        "staging" => app.record("environments").record(environment).text("url"),
        _ => app.text("url"),
    }
}

/// Where a version is to be seen by itself: beside the one that is served.
fn preview(app: &Record, version: i64) -> Option<String> {
    let all = app.record("environments").members();
    let (_, known) = all.first()?;
    let url = known.opt("preview_url")?;
    // The version ends the first name of the host.
    let (first, rest) = url.split_once('.')?;
    let (start, _) = first.rsplit_once("--v")?;
    Some(format!("{start}--v{version}.{rest}"))
}

/// The deploy in the address: its log once it ended.
fn progress(shown: Shown, deploy: Query) -> AnyView {
    let session = use_session();
    let log = Load::new(move || -> Answer {
        let id = deploy.value.get();
        let path = format!("{}/deploys/{id}/logs/stream", shown.path.get_untracked());
        session.api().text(&path)
    });
    Effect::new(move |_| {
        if log.good().is_some() {
            shown.load.reload();
        }
    });
    let wait = || badge("building");
    let app = move || shown.load.good().unwrap_or_default();
    view! { <div aria-live="polite">{loaded(log, ViewFn::from(wait), move |text| ended(&text, &app()))}</div> }
        .into_any()
}

/// The events of a log.
fn events(text: &Record) -> Vec<Record> {
    let text = crate::record::plain(&text.0);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data).ok())
        .map(Record)
        .collect()
}

fn ended(text: &Record, app: &Record) -> AnyView {
    let mut events = events(text);
    let end = match events
        .last()
        .is_some_and(|last| last.opt("status").is_some())
    {
        true => events.pop().unwrap_or_default(),
        false => Record::default(),
    };
    let lines: Vec<String> = events.iter().map(|one| one.text("message")).collect();
    let lines = lines.join("\n");
    let environment = end.text("environment");
    let label = match environment.as_str() {
        "staging" => "Open staging",
        _ => "Open the app",
    };
    // The first deploy to an environment is known before its address is.
    let url = address(app, &environment);
    let open = (end.text("status") == "complete" && !url.is_empty()).then(|| {
        view! { <div><a class="btn primary" href=url target="_blank" rel="noopener">{label}</a></div> }
    });
    let problem = end
        .opt("error")
        .map(|error| view! { <Explain problem=Problem::local(error)/> });
    view! {
        <div class="card stack">
            <strong>"Deploy"</strong>
            {badge(&end.text("status"))}
            {problem}
            <pre class="code-block" role="log" tabindex="0" aria-label="Log of the deploy">{lines}</pre>
            {open}
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_preview_beside_the_one_that_is_served() {
        let of = |url: &str| {
            Record(json!({"environments": {"production": {"version": 12, "preview_url": url}}}))
        };
        for (known, other) in [
            (
                "http://films--v12.localhost:8420",
                "http://films--v3.localhost:8420",
            ),
            (
                "https://films--v12.apps.example.com",
                "https://films--v3.apps.example.com",
            ),
        ] {
            assert_eq!(preview(&of(known), 3).as_deref(), Some(other));
        }
        assert_eq!(preview(&Record(json!({"environments": {}})), 3), None);
    }

    #[test]
    fn a_log_is_read_event_by_event() {
        let text = "event: log\ndata: {\"timestamp\":\"2026-11-21T10:00:00Z\",\"message\":\"queued\"}\n\n:\n\nevent: end\ndata: {\"status\":\"complete\"}\n\n";
        let all = events(&Record(text.into()));
        assert_eq!(all.len(), 2);
        assert_eq!(
            (
                all[0].text("message").as_str(),
                all[1].text("status").as_str()
            ),
            ("queued", "complete")
        );
    }
}
