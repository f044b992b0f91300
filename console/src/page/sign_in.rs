use leptos::prelude::*;

use crate::{
    api::Api,
    load::Change,
    part::{Icon, refusal},
    session::use_session,
};

/// A key is all that is asked for; it is tried before it is kept.
#[component]
pub fn SignIn() -> AnyView {
    let session = use_session();
    let key = RwSignal::new(String::new());
    let change = Change::new();
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let typed = key.get_untracked().trim().to_owned();
        let api = Api {
            key: typed.clone(),
            namespace: None,
        };
        change.run(api.get("/v1/me"), move |me| session.sign_in(typed, me));
    };
    document().set_title("Sign in · Loupe");
    view! {
        <main class="sign-in">
            <form class="card form" on:submit=submit>
                <p class="brand"><Icon name="search" size=20/>"Loupe"</p>
                <div><h1>"Sign in"</h1><p class="muted">"With an API key of your organization. The first one was printed when Loupe started for the first time."</p></div>
                <div class="field">
                    <label for="key">"API key"</label>
                    <input class="input mono" id="key" type="password" bind:value=key required=true placeholder="loupe_sk_…"
                        autocomplete="off" spellcheck="false" autofocus=true/>
                    <span class="hint">"Kept in this tab until it is closed."</span>
                </div>
                {refusal(change)}
                <button class="btn primary" aria-busy=move || change.busy.get().to_string()>"Sign in"</button>
            </form>
        </main>
    }
    .into_any()
}
