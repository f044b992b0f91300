//! The owner's console. So far it is the one page that leads to what works without it; the pages that will replace it
//! are being written in `console/draft`.

use leptos::prelude::*;

fn main() {
    mount_to_body(|| {
        view! {
            <main class="welcome">
                <h1>"Loupe is running"</h1>
                <p>
                    "The pages for keys, buckets, collections and retrievers are still being built. Everything they will "
                    "do can be done through the API today."
                </p>
                <ul>
                    <li><a href="/docs">"Every operation of the API, with its schemas"</a></li>
                    <li><a href="/v1/public/retrievers/">"The public search pages of this server"</a></li>
                </ul>
                <p>"For a first search page, run " <code>"loupe demo"</code> " on this machine."</p>
            </main>
        }
    });
}
