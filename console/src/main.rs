//! The owner's console: a client of `/v1` like any other, with nothing of its own on the server.

mod api;
mod frame;
mod load;
mod page;
mod part;
mod record;
mod session;
mod text;

use leptos::prelude::*;
use leptos_router::{
    components::{ParentRoute, Redirect, Route, Router, Routes},
    path,
};

use page::*;
use session::Session;

fn main() {
    mount_to_body(App);
}

#[component]
fn App() -> impl IntoView {
    let session = Session::restore();
    provide_context(session);
    provide_context(part::Toasts::default());
    view! {
        <Router base="/console">
            <Show when=move || session.signed_in() fallback=|| view! { <sign_in::SignIn/> }>
                <Pages/>
            </Show>
        </Router>
        <part::ToastList/>
    }
}

#[component]
fn Pages() -> impl IntoView {
    view! {
        <Routes fallback=|| view! { <frame::Lost/> }>
            <ParentRoute path=path!("") view=frame::Frame>
                <Route path=path!("") view=|| view! { <Redirect path="/namespaces"/> }/>
                <Route path=path!("namespaces") view=namespaces::Namespaces/>
                <Route path=path!("keys") view=keys::Keys/>
                <Route path=path!("tasks") view=tasks::Tasks/>
                <Route path=path!("ns/:ns/buckets") view=buckets::Buckets/>
                <Route path=path!("ns/:ns/buckets/:bucket") view=bucket::Bucket/>
                <Route path=path!("ns/:ns/batches") view=batches::Batches/>
                <Route path=path!("ns/:ns/batches/:bucket/:batch") view=batch::Batch/>
                <Route path=path!("ns/:ns/collections") view=collections::Collections/>
                <Route path=path!("ns/:ns/collections/:collection") view=documents::Documents/>
                <Route path=path!("ns/:ns/retrievers") view=retrievers::Retrievers/>
                <Route path=path!("ns/:ns/retrievers/:retriever") view=playground::Playground/>
                <Route path=path!("ns/:ns/published") view=published::Published/>
            </ParentRoute>
        </Routes>
    }
}
