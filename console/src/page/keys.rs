use leptos::prelude::*;
use serde_json::json;

use super::{
    key_form::{KeyChange, KeyForm, level},
    key_usage::{KeyUsage, by_day, usage_path, week},
};
use crate::{
    api::{Api, Problem},
    load::{Change, Load, Query},
    part::{chart::spark, *},
    record::{Record, items, page},
    session::{Session, use_session},
    text,
};

const COLUMNS: &[Column] = &[
    Column("Name", ""),
    Column("Access", ""),
    Column("Status", ""),
    Column("Requests, 7 d", "num nowrap"),
    Column("Created", ""),
    Column("Last used", ""),
    Column("Expires", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "key",
    title: "No key here",
    text: "Keys authenticate every call. This user has none yet.",
    link: None,
};

const SHOWN: &[&str] = &["active", "expired", "revoked"];

/// Whose keys are shown: of the user in the address, else of the one who looks.
pub fn holder(session: Session, user: Query) -> Result<String, Problem> {
    let chosen = Some(user.value.get()).filter(|user| !user.is_empty());
    let own = || session.me.with(|me| me.as_ref()?.opt("user_email"));
    chosen.or_else(own).ok_or_else(|| {
        Problem::local("this key belongs to no user; sign in with a user's key to see keys")
    })
}

/// The address of a user's keys.
pub fn keys_path(email: &str) -> String {
    format!("/v1/organizations/users/{}/api-keys", text::escape(email))
}

/// What rows ask for: to be done to the key.
#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Change,
    Rotate,
    Revoke,
}

/// The key in question, for the dialogs.
#[derive(Clone, Copy)]
struct Asked {
    key: RwSignal<Record>,
    /// The key in the address, whose use is told.
    usage: Query,
    change: RwSignal<bool>,
    rotate: RwSignal<bool>,
    revoke: RwSignal<bool>,
    /// Apps that have the secret in them which was refused last.
    carried: RwSignal<String>,
}

impl Asked {
    fn ask(self, verb: Verb, key: Record) {
        self.key.set(key);
        match verb {
            Verb::Change => self.change.set(true),
            Verb::Rotate => self.rotate.set(true),
            Verb::Revoke => self.revoke.set(true),
        }
    }
}

/// What every key was used for within a week.
#[derive(Clone, Copy)]
struct Week(Load);

pub fn keys() -> AnyView {
    let session = use_session();
    let (user, shown) = (Query::new("user"), Query::new("status"));
    let known = Memo::new(move |_| session.me.with(Option::is_some));
    let load = Load::new(move || {
        let (ready, api, shown) = (known.get(), session.api(), shown.value.get());
        let holder = holder(session, user);
        async move {
            if !ready {
                // Who it is arrives first; then this runs again.
                return std::future::pending().await;
            }
            list(api, &keys_path(&holder?), &shown).await
        }
    });
    let (create, secret) = (RwSignal::new(false), RwSignal::new(None));
    let closed = || RwSignal::new(false);
    let asked = Asked {
        key: RwSignal::new(Record::default()),
        usage: Query::new("key"),
        change: closed(),
        rotate: closed(),
        revoke: closed(),
        carried: RwSignal::new(String::new()),
    };
    provide_context(asked);
    follow(asked, load);
    let used = Load::of(move || session.api(), usage_path);
    provide_context(Week(used));
    // It stands there until it is done: the new secret is shown above everything first.
    let carried = move || {
        let apps = Some(asked.carried.get()).filter(|apps| !apps.is_empty())?;
        Some(
            view! { <p class="notice warn" role="status">"The old secret is in "{apps}": deploy with the new one."</p> },
        )
    };
    let whose = move || {
        let user = user.value.get();
        (!user.is_empty()).then(|| view! {
            <div class="row"><span class="tag">"Keys of "{user}</span><a href="/console/keys">"Show mine"</a></div>
        })
    };
    view! {
        <ListPage title="API keys" text="Keys authenticate every call. A secret is shown once, at creation or rotation." load columns=COLUMNS row
            blank=BLANK create=Create::Dialog("Create key", create) picks=vec![shown] above=ViewFn::from(move || carried)>
            <Pick query=shown label="Status" all="Every status" options=SHOWN/>
            {whose}
        </ListPage>
        <KeyForm open=create secret load user/>
        <KeyChange open=asked.change key=asked.key load user/>
        <Rotate asked create secret load user/>
        <Revoke asked load user/>
        <KeyUsage open=asked.usage.is_named() key=asked.key/>
        <Secret secret/>
    }
    .into_any()
}

/// The key in the address is the one in question, once the list tells of it.
fn follow(asked: Asked, load: Load) {
    Effect::new(move |_| {
        let id = asked.usage.value.get();
        if let (false, Some(all)) = (id.is_empty(), load.good()) {
            let found = page(&all)
                .0
                .into_iter()
                .find(|key| key.text("key_id") == id);
            let bare = || Record(json!({"key_id": id.clone(), "name": id.clone()}));
            asked.key.set(found.unwrap_or_else(bare));
        }
    });
}

/// The keys of one status; those in use when none is asked for by name.
async fn list(api: Api, path: &str, shown: &str) -> Result<Record, Problem> {
    let answer = api.get(&format!("{path}?include_revoked=true")).await?;
    let (mut keys, _) = page(&answer);
    keys.retain(|key| shown.is_empty() || key.text("status") == shown);
    // What works comes before what does not.
    keys.sort_by_key(|key| key.text("status") != "active");
    let keys: Vec<_> = keys.into_iter().map(|key| key.0).collect();
    Ok(Record(json!({"results": keys})))
}

/// Where the key counts, in a line.
fn scopes(key: &Record) -> String {
    let all = key.list("scopes").into_iter().map(|scope| {
        let kind = text::words(&scope.text("resource_type"));
        format!("{kind} {}", scope.text("resource_id"))
    });
    match all.collect::<Vec<_>>().join(", ") {
        all if all.is_empty() => "the whole organization".into(),
        all => all,
    }
}

fn row(key: Record) -> AnyView {
    let asked: Asked = expect_context();
    let title = key.text("name");
    // The organization's own key is made by the server itself; the server lets nobody change it.
    let own = key.text("created_by") == "system";
    let live = key.text("status") == "active" && !own;
    let button = |verb: Verb, label: &'static str| {
        let (key, title) = (key.clone(), format!("{label} {title}"));
        view! { <button type="button" class="btn small" aria-label=title on:click=move |_| asked.ask(verb, key.clone())>{label}</button>" " }.into_any()
    };
    let id = key.text("key_id");
    let usage = press("Usage", &title, Box::new(move || asked.usage.set(&id)));
    let mut buttons = vec![usage];
    if live {
        buttons.extend([
            button(Verb::Change, "Change"),
            button(Verb::Rotate, "Rotate"),
            button(Verb::Revoke, "Revoke"),
        ]);
    }
    if own {
        buttons.push(view! { <span class="sub">"cannot be changed or revoked"</span> }.into_any());
    }
    let kind = kind(&key.text("key_type"));
    let prefix = key.text("key_prefix");
    let prefix = format!("{}…", prefix.trim_end_matches('…'));
    let note = key.opt("description");
    let note = note.map(|note| view! { <span class="sub">{note}</span> });
    let expires = key
        .opt("expires_at")
        .map_or_else(|| "never".into(), |at| text::moment(&at));
    line(vec![
        view! { <th scope="row">{key.text("name")}" "<span class="tag">{kind}</span><span class="sub mono">{prefix}</span>{note}</th> }
            .into_any(),
        two(level(&key).to_owned(), scopes(&key)),
        cell("", badge(&key.text("status"))),
        requests(&key),
        cell("nowrap", when(key.opt("created_at"))),
        cell("nowrap", when(key.opt("last_used_at"))),
        words("", expires),
        cell("actions pairs", buttons.into_any()),
    ])
}

/// Whom a key is for.
fn kind(key_type: &str) -> &'static str {
    match key_type {
        "retriever" => "one retriever",
        "user_scoped" => "one principal",
        "session" => "a session",
        _ => "standard",
    }
}

/// How often the key was used within a week. One answer beside the list tells it of all; a key that was not used is none of it.
fn requests(key: &Record) -> AnyView {
    let (Week(load), id) = (expect_context(), key.text("key_id"));
    let shown = move || match load.value.get() {
        None => view! { <span class="skeleton short"></span> }.into_any(),
        Some(Ok(all)) => {
            let mut all = all.list("results").into_iter();
            let sum = all.find(|one| one.text("key_id") == id);
            let sum = sum.unwrap_or_default();
            let bars = spark(&by_day(&sum, &week()));
            let count = text::count(sum.int("requests").unwrap_or(0));
            view! { {bars}{count} }.into_any()
        }
        Some(Err(_)) => "–".into_any(),
    };
    cell("num nowrap", shown.into_any())
}

/// What the key to be rotated was used for within a week.
fn lately(session: Session, asked: Asked) -> Load {
    Load::of(
        move || session.api(),
        move || match asked.rotate.get() {
            true => {
                let id = text::escape(&asked.key.get_untracked().text("key_id"));
                let start = text::escape(&text::before(7.0));
                format!("/v1/organizations/api-keys/{id}/usage/endpoints?start={start}")
            }
            false => String::new(),
        },
    )
}

#[component]
fn Rotate(
    asked: Asked,
    create: RwSignal<bool>,
    secret: RwSignal<Option<(String, String)>>,
    load: Load,
    user: Query,
) -> AnyView {
    let session = use_session();
    let change = Change::new();
    let title = Signal::derive(move || format!("Rotate {}?", asked.key.get().text("name")));
    let used = lately(session, asked);
    let second = move |_| {
        asked.rotate.set(false);
        create.set(true);
    };
    let submit = Callback::new(move |()| {
        let name = asked.key.get_untracked().text("name");
        let holder = untrack(|| holder(session, user));
        let (api, piece) = (session.api(), text::escape(&name));
        let call = async move {
            let path = format!("{}/{piece}/rotate", keys_path(&holder?));
            api.post(&path, &json!({})).await
        };
        change.run(call, move |answer| {
            asked.rotate.set(false);
            load.reload();
            let apps = answer.list("referencing_apps").into_iter();
            let apps: Vec<String> = apps.map(|app| app.text("slug")).collect();
            asked.carried.set(apps.join(", "));
            secret.set(Some((name, answer.text("key"))));
        });
    });
    view! {
        <Ask open=asked.rotate title label="Rotate" danger=true change submit>
            <p>"The key gets a new secret and keeps its name and permissions. "<strong class="alarm">"The old secret is refused from the next request on."</strong></p>
            <p class="muted">"Last used: "{when(asked.key.get().opt("last_used_at"))}</p>
            {loaded(used, waiting(2), callers)}
            <div class="notice">
                <span>"To change over without a gap: create a second key, move the callers to it, then revoke this one. Keys in use have different names, so it takes a name of its own."</span>
                <div><button type="button" class="btn small" on:click=second>"Create a second key instead"</button></div>
            </div>
        </Ask>
    }
    .into_any()
}

/// Operations that are told of by name.
const CALLED: usize = 5;

/// What callers of a key do with it, so that whoever rotates it knows whom to tell.
fn callers(answer: Record) -> AnyView {
    let all = items(&answer.0);
    if all.is_empty() {
        return view! { <p class="muted">"No call was made with it in the last 7 days."</p> }
            .into_any();
    }
    let more = all.len().saturating_sub(CALLED) as i64;
    let more = (more > 0).then(
        || view! { <li>"and "{text::counted(more, "other operation", "other operations")}</li> },
    );
    let lines = all.into_iter().take(CALLED).map(|one| {
        let times = text::counted(one.int("requests").unwrap_or(0), "time", "times");
        let name = format!("{} {}", one.text("method"), one.text("path"));
        view! { <li><code>{name}</code>" "{times}", last "{when(one.opt("last_used_at"))}</li> }
            .into_any()
    });
    let lines = lines.collect::<Vec<_>>();
    view! { <div class="stack-sm"><span>"In the last 7 days callers used it for:"</span><ul>{lines}{more}</ul></div> }
        .into_any()
}

/// What the server found that speaks against it.
pub fn found(problem: &Problem) -> Vec<AnyView> {
    let apps = Record(
        problem
            .details
            .get("referencing_apps")
            .cloned()
            .unwrap_or_default(),
    );
    let apps = items(&apps.0).into_iter().map(|app| {
        let name = app.first(&["name", "app_name", "slug", "app_id"]);
        let href = format!("/console/apps/{}", text::escape(&app.text("app_id")));
        view! { <li>"The published app "<a href=href>{name}</a>" carries it"</li> }.into_any()
    });
    let used = problem
        .details
        .get("last_used_at")
        .and_then(|at| at.as_str());
    let used = used
        .map(|at| view! { <li>{format!("It was used at {}", text::exact(at))}</li> }.into_any());
    apps.chain(used).collect()
}

/// Revokes, or tells `refused` what speaks against it.
pub async fn end(
    api: Api,
    path: String,
    refused: RwSignal<Option<Problem>>,
) -> Result<Record, Problem> {
    match api.delete(&path).await {
        Err(problem) if problem.details.get("referencing_apps").is_some() => {
            refused.set(Some(problem));
            Ok(Record(json!({"kept": true})))
        }
        other => other,
    }
}

#[component]
fn Revoke(asked: Asked, load: Load, user: Query) -> AnyView {
    let session = use_session();
    let toasts: Toasts = expect_context();
    let (change, typed) = (Change::new(), RwSignal::new(String::new()));
    // The first refusal says what was found; from then on the name must be typed.
    let refused = RwSignal::new(None::<Problem>);
    let open = asked.revoke;
    Effect::new(move |_| {
        if open.get() {
            refused.set(None);
            typed.set(String::new());
        }
    });
    let name = Signal::derive(move || asked.key.get().text("name"));
    let submit = Callback::new(move |()| {
        let (name, force) = (
            name.get_untracked(),
            refused.with_untracked(Option::is_some),
        );
        if force && typed.get_untracked().trim() != name {
            change.refuse("this is not its name");
            return;
        }
        let (api, holder) = (session.api(), untrack(|| holder(session, user)));
        let piece = text::escape(&name);
        let call = async move {
            let path = format!("{}/{piece}?force={force}", keys_path(&holder?));
            end(api, path, refused).await
        };
        change.run(call, move |answer| {
            if !answer.flag("kept") {
                open.set(false);
                toasts.say(format!("{name} is revoked"));
                load.reload();
            }
        });
    });
    let title = Signal::derive(move || format!("Revoke {}?", name.get()));
    view! {
        <Ask open title label="Revoke" danger=true change submit>
            <p>"Every call with this key is refused from now on. This cannot be undone."</p>
            {move || refused.get().map(|problem| view! {
                <div class="notice warn" role="alert">
                    <strong>"This key is in use"</strong>
                    <ul>{found(&problem)}</ul>
                    <span>"Secrets of build servers and deployments cannot be seen from here."</span>
                </div>
                <Confirm name typed/>
            }.into_any())}
        </Ask>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        APIKeyModel, ApiKeyDayUsage, ApiKeyUsageResponse, Permission, ResourceScope, ResourceType,
    };

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn where_a_key_counts_is_said() {
        let mut key = APIKeyModel::default();
        assert_eq!(scopes(&sent(&key)), "the whole organization");
        key.scopes = vec![ResourceScope {
            resource_type: ResourceType::Bucket,
            resource_id: "bkt_raw*".into(),
            ..Default::default()
        }];
        assert_eq!(scopes(&sent(&key)), "bucket bkt_raw*");
    }

    #[test]
    fn days_without_requests_have_a_place() {
        let sum = ApiKeyUsageResponse {
            days: vec![ApiKeyDayUsage {
                day: "2026-11-23".into(),
                requests: 7,
                errors: 1,
            }],
            ..Default::default()
        };
        let days = ["2026-11-22", "2026-11-23", "2026-11-24"].map(str::to_owned);
        assert_eq!(by_day(&sent(&sum), &days), [0, 7, 0]);
    }

    #[test]
    fn the_strongest_level_is_what_a_key_can_do() {
        let mut key = APIKeyModel::default();
        for (permissions, told) in [
            (vec![Permission::Delete, Permission::Read], "delete"),
            (vec![Permission::Admin], "admin"),
            (vec![], "read"),
        ] {
            key.permissions = permissions;
            assert_eq!(level(&sent(&key)), told);
        }
    }
}
