//! Names of the owner's own for an app, and the records that each waits for.

use leptos::prelude::*;
use serde_json::json;

use super::one::Shown;
use crate::{
    api::Answer,
    load::Load,
    part::{schema::Form, *},
    record::Record,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Domain", ""),
    Column("Status", ""),
    Column("Records in its DNS", ""),
    Column("", "actions"),
];

const FORM: &str = "apps/domains";

pub fn domains(shown: Shown) -> AnyView {
    let session = use_session();
    let path = move || format!("{}/domains", shown.path.get_untracked());
    let load = Load::new(move || -> Answer {
        let (api, path) = (session.api(), format!("{}/domains", shown.path.get()));
        Box::pin(async move {
            let mut all = api.get(&path).await?;
            all.0["results"] = all.value("domains").cloned().unwrap_or_default();
            Ok(all)
        })
    });
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(shown);
    let add = RwSignal::new(false);
    let delete = move |one: Record| {
        let path = format!("{}/{}", path(), text::escape(&one.text("domain")));
        session.api().delete(&path)
    };
    let empty = move || view! { <Empty icon="link" title="No domain of your own" text="The app has an address below the domain of this server. A domain of yours serves it too, once two records in its DNS lead here."/> };
    view! {
        <div class="row between">
            <h2>"Domains"</h2>
            <button type="button" class="btn" on:click=move |_| add.set(true)><Icon name="plus"/>"Add a domain"</button>
        </div>
        {refusal(rows.change)}
        <Listing load label="Domains" columns=COLUMNS row empty=ViewFn::from(empty) offset=None/>
        <Fill open=add title="Add a domain".to_owned() label="Add" form=Form::plain("domain") schema=FORM start=Callback::new(|()| json!({}))
            send=Callback::new(move |body| session.api().post(&path(), &body)) done=Callback::new(move |_| load.reload())/>
        <Discard rows what="domain" name="domain" loses="The app answers there no more." delete=Callback::new(delete)/>
    }
    .into_any()
}

fn record(kind: &'static str, at: String, value: String) -> AnyView {
    let copied = value.clone();
    view! { <div><span class="uri"><span>{kind}" of "<code>{at}</code></span></span><span class="uri"><code class="muted">{value}</code><Copy text=copied/></span></div> }.into_any()
}

fn row(one: Record) -> AnyView {
    let (session, rows, shown): (_, Rows, Shown) =
        (use_session(), expect_context(), expect_context());
    let toasts: Toasts = expect_context();
    let domain = one.text("domain");
    let waits = one.text("status") != "active";
    let at = domain.clone();
    let verify = move || {
        let path = shown.path.get_untracked();
        let path = format!("{path}/domains/{}/verify", text::escape(&at));
        rows.change
            .run(session.api().post(&path, &json!({})), move |told| {
                toasts.say(match told.text("status").as_str() {
                    "active" => "The domain is proven, and serves the app",
                    _ => "The TXT record is not there yet. It may take minutes to be seen.",
                });
                rows.reload();
            });
    };
    let verify = waits.then(|| press("Verify", &domain, Box::new(verify)));
    let is_first = one.flag("is_primary");
    let at = domain.clone();
    let make_first = move || {
        let path = format!("{}/domains", shown.path.get_untracked());
        let body = json!({"domain": at, "is_primary": true});
        rows.change.run(session.api().post(&path, &body), move |_| {
            toasts.say("Links to the app use it from the moment it is proven");
            rows.reload();
            shown.load.reload();
        });
    };
    let make_first =
        (!is_first).then(|| press("Make it the first address", &domain, Box::new(make_first)));
    let token = one.text("verification_token");
    let proof = waits.then(|| record("TXT", format!("_loupe-verify.{domain}"), token));
    let records = view! { <div class="stack-sm records">{proof}{record("CNAME", domain.clone(), one.text("cname_target"))}</div> };
    let first = is_first.then(|| badge("first address"));
    let status = badge(if waits { "pending" } else { "active" });
    let buttons = view! { {verify}{make_first}{rows.open("Remove", &domain, &one)} };
    line(vec![
        name(None, domain.clone(), String::new()),
        cell("", view! { {status}" "{first} }.into_any()),
        cell("", records.into_any()),
        cell("actions", buttons.into_any()),
    ])
}
