//! The owner's console: a client of `/v1` like any other, with nothing of its own on the server.

mod api;
mod cron;
mod frame;
mod leave;
mod live;
mod load;
mod page;
mod palette;
mod part;
mod record;
mod route;
mod session;
mod text;

use leptos::prelude::*;
use leptos_router::components::Router;

use page::sign_in::SignIn;
use session::Session;

fn main() {
    mount_to_body(App);
}

#[component]
fn App() -> AnyView {
    let session = Session::restore();
    provide_context(session);
    provide_context(part::Toasts::default());
    leave::Unsaved::provide();
    let inside = move || match session.signed_in() {
        true => view! { <frame::Frame/> },
        false => view! { <SignIn/> },
    };
    view! { <Router base=route::BASE>{inside}</Router>{part::toast_list(false)} }.into_any()
}
