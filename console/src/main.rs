//! The owner's console.
use leptos::prelude::*;
use leptos_router::components::Router;
fn main() {
    mount_to_body(|| view! { <Router><p>"x"</p></Router> })
}
