//! What a namespace was: snapshots of it, taken and restored, and copies of it as it is.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    load::{Change, Load, navigator},
    part::{schema::Form, *},
    record::Record,
    route::param,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Taken", ""),
    Column("Holds", ""),
    Column("Status", ""),
    Column("Last restored", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "layers",
    title: "No snapshot yet",
    text: "A snapshot keeps what this namespace holds as it is now: its documents and vectors, and all that is made of them. It can be restored into a new namespace, or in place.",
    link: None,
};

/// The names of the forms.
const COPY: &str = "snapshots/copy";
const RESTORE: &str = "snapshots/restore";

/// The most that the list shows; the server keeps no more of one namespace.
const LISTED: u32 = 100;

/// Where the calls about a namespace go.
fn path_of(ns: &str) -> String {
    format!("/v1/namespaces/{}", text::escape(ns))
}

fn is_open(one: &Record) -> bool {
    matches!(one.text("status").as_str(), "pending" | "in_progress")
}

pub fn snapshots() -> AnyView {
    let (session, ns, toasts): (_, _, Toasts) = (use_session(), param("ns"), expect_context());
    let load = Load::new(move || {
        let path = format!("{}/snapshots/list", path_of(&ns.get()));
        session.api().post(&path, &json!({ "limit": LISTED }))
    });
    load.poll_while(is_open);
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(ns);
    let (take, copy) = (RwSignal::new(false), RwSignal::new(false));
    let go = navigator();
    let send = move |body: Value| {
        let path = format!("{}/clone", path_of(&ns.get_untracked()));
        session.api().post(&path, &body)
    };
    let copied = move |made: Record| {
        session.namespaces_changed.update(|n| *n += 1);
        toasts.say("The namespace is being copied");
        let id = made.record("namespace").text("namespace_id");
        go(&format!("/ns/{}/collections", text::escape(&id)));
    };
    let restore = move |body: Value| {
        let path = format!(
            "{}/restore",
            one_path(&ns.get_untracked(), &rows.of.get_untracked())
        );
        session.api().post(&path, &body)
    };
    let restored = move |_| {
        session.namespaces_changed.update(|n| *n += 1);
        toasts.say("It is being restored; the new namespace is in the list when it is begun, its alerts off and its triggers paused");
        load.reload();
    };
    let remove = move |one: Record| session.api().delete(&one_path(&ns.get_untracked(), &one));
    view! {
        <ListPage title="Snapshots" text="Earlier states of this namespace, to go back to." load columns=COLUMNS row blank=BLANK rows
            create=Create::Dialog("Take a snapshot", take)>
            <button type="button" class="btn" on:click=move |_| copy.set(true)>"Copy the namespace as it is"</button>
        </ListPage>
        <Take open=take ns load/>
        <Fill open=copy title="Copy the namespace".to_owned() label="Copy" form=Form::plain("copy") schema=COPY
            start=Callback::new(|()| json!({"include_resources": {"taxonomies": true}})) send=Callback::new(send) done=Callback::new(copied)/>
        <Fill open=rows.dialog("Restore") title="Restore into a new namespace".to_owned() label="Restore" form=Form::plain("restore") schema=RESTORE
            start=Callback::new(|()| json!({})) send=Callback::new(restore) done=Callback::new(restored)/>
        <TurnBack rows ns/>
        <Discard rows what="snapshot" name="snapshot_id" loses="Nothing can be restored from it any more. What is there now stays."
            delete=Callback::new(remove)/>
    }
    .into_any()
}

/// The address of one snapshot.
fn one_path(ns: &str, one: &Record) -> String {
    let id = text::escape(&one.text("snapshot_id"));
    format!("{}/snapshots/{id}", path_of(ns))
}

#[component]
fn Take(open: RwSignal<bool>, ns: Memo<String>, load: Load) -> AnyView {
    let session = use_session();
    let (change, files) = (Change::new(), RwSignal::new(true));
    let submit = Callback::new(move |()| {
        let path = format!("{}/snapshots", path_of(&ns.get_untracked()));
        let body = json!({"copy_s3_objects": files.get_untracked()});
        change.run(session.api().post(&path, &body), move |_| {
            open.set(false);
            load.reload();
        });
    });
    view! {
        <Ask open title="Take a snapshot".to_owned() label="Take it" change submit>
            <p>"All that the namespace holds is kept as it is now. Everything goes on meanwhile."</p>
            <Check label="With the files of the objects" checked=files set=move |on: bool| files.set(on)
                hint="Takes their room once more; without them, files that are deleted later stay lost."/>
        </Ask>
    }
    .into_any()
}

/// Restores in place, once the name of the namespace is typed.
#[component]
fn TurnBack(rows: Rows, ns: Memo<String>) -> AnyView {
    let (session, toasts): (_, Toasts) = (use_session(), expect_context());
    let (open, change) = (rows.dialog("Turn back"), Change::new());
    let typed = RwSignal::new(String::new());
    Effect::new(move |_| {
        if open.get() {
            typed.set(String::new());
        }
    });
    let name = Signal::derive(move || rows.of.get().text("namespace_name"));
    let submit = Callback::new(move |()| {
        if typed.get_untracked().trim() != name.get_untracked() {
            change.refuse("this is not its name");
            return;
        }
        let path = format!(
            "{}/restore",
            one_path(&ns.get_untracked(), &rows.of.get_untracked())
        );
        let call = session
            .api()
            .post(&path, &json!({"confirm_in_place": true}));
        change.run(call, move |_| {
            open.set(false);
            toasts.say("The namespace is being turned back");
            rows.reload();
        });
    });
    view! {
        <Ask open title="Turn the namespace back?".to_owned() label="Turn back" danger=true change submit>
            <p>"What the snapshot holds becomes what it was "{move || when(rows.of.get().opt("created_at"))}
                ": "<strong class="alarm">"changes that were made to it since are lost."</strong>" What was made since stays."</p>
            <p class="notice">"To look first: restore it into a new namespace."</p>
            <Confirm name typed/>
        </Ask>
    }
    .into_any()
}

/// What a snapshot holds, in a line.
fn holds(one: &Record) -> String {
    let manifest = one.record("manifest");
    let Some(points) = manifest.int("vector_point_count") else {
        return String::new();
    };
    let rows = manifest.record("mongo_collections").members().into_iter();
    // The documents of each collection are counted with the points.
    let rows = rows.filter(|(name, _)| !name.starts_with("col_"));
    let rows = rows.map(|(name, n)| (name, n.0.as_i64().unwrap_or(0)));
    let rows = rows.filter(|(_, n)| *n > 0);
    let mut all: Vec<String> = rows.map(|(name, n)| text::counted_as(n, &name)).collect();
    all.push(text::counted(points, "point", "points"));
    if one.flag("s3_objects_copied") {
        let files = manifest.int("s3_object_count").unwrap_or(0);
        let bytes = manifest.int("s3_total_bytes").unwrap_or(0);
        let files = text::counted(files, "file", "files");
        all.push(format!("{files} of {}", text::size(bytes)));
    }
    all.join(", ")
}

/// How its last restoration went.
fn last(one: &Record) -> AnyView {
    let report = one.record("last_restore");
    let Some(target) = report.opt("target_namespace_id") else {
        return view! { <span class="muted">"never"</span> }.into_any();
    };
    let state = match report.flag("complete") {
        true => "complete",
        false => "partial",
    };
    let href = format!("/console/ns/{}/collections", text::escape(&target));
    view! { {badge(state)}<a class="instance mono" href=href>{target}</a> }.into_any()
}

fn row(one: Record) -> AnyView {
    let (session, rows, toasts): (_, Rows, Toasts) =
        (use_session(), expect_context(), expect_context());
    let ns: Memo<String> = expect_context();
    let (id, taken) = (one.text("snapshot_id"), one.opt("created_at"));
    let done = matches!(one.text("status").as_str(), "completed" | "partial");
    let path = format!("{}/verify?deep=true", one_path(&ns.get_untracked(), &one));
    let check = move || {
        rows.change.run(session.api().get(&path), move |found| {
            let issues = found.list("issues").into_iter();
            let issues = issues.map(|one| one.text("detail")).collect::<Vec<_>>();
            match found.flag("restorable") {
                true => toasts.say("Its files are there, and are what they were"),
                false => rows
                    .change
                    .refuse_as("It cannot be restored", issues.join("; ")),
            }
        });
    };
    let restorable = done.then(|| view! { {press("Check", &id, Box::new(check))}{rows.open("Restore", &id, &one)}{rows.open("Turn back", &id, &one)} });
    let remove = (!is_open(&one)).then(|| rows.open("Remove", &id, &one));
    let error = one.text("error");
    let kind = text::words(&one.text("snapshot_type"));
    let shown = view! { <th scope="row">{when(taken)}<span class="sub mono">{id}</span></th> };
    line(vec![
        shown.into_any(),
        two(holds(&one), kind),
        cell(
            "",
            view! { {badge(&one.text("status"))}<span class="sub cut">{error}</span> }.into_any(),
        ),
        cell("", last(&one)),
        cell("actions many", view! { {restorable}{remove} }.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CloneNamespaceRequest, RestoreSnapshotRequest};

    use super::*;

    #[test]
    fn what_a_snapshot_holds_is_told() {
        let one = json!({"s3_objects_copied": true, "manifest": {"mongo_collections": {"buckets": 2, "clusters": 0, "col_1": 1200, "taxonomies": 1}, "vector_point_count": 1200,
            "s3_object_count": 1, "s3_total_bytes": 1536}});
        assert_eq!(
            holds(&Record(one)),
            "2 buckets, 1 taxonomy, 1,200 points, 1 file of 1.5 KB"
        );
        // One that is not taken yet holds nothing to tell of.
        assert_eq!(holds(&Record(json!({"status": "pending"}))), "");
    }

    #[test]
    fn what_the_forms_make_is_taken() {
        let body = json!({"namespace_name": "copy", "include_resources": {"taxonomies": false}});
        let request: CloneNamespaceRequest = serde_json::from_value(body).expect("a body");
        let include = request.include_resources.expect("what is copied");
        assert!(include.collections && !include.taxonomies);
        for (form, member) in [(COPY, "namespace_name"), (RESTORE, "target_namespace_name")] {
            let fields = schema::named(form).record("properties");
            assert!(fields.record(member).flag("must"), "{form}");
        }
        let body = json!({"target_namespace_name": "yesterday"});
        serde_json::from_value::<RestoreSnapshotRequest>(body).expect("a body");
    }
}
