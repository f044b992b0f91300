//! A published page gets another name.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::Place;
use crate::{
    api::{Answer, Problem},
    part::{Fill, Toasts, schema::Form},
    record::Record,
};

/// The dialog that asks for the name: publishing under it changes nothing else of the page.
pub fn dialog(place: Place, name: RwSignal<String>, open: RwSignal<bool>) -> AnyView {
    let said = expect_context::<Toasts>();
    let send = move |body: Value| -> Answer {
        if name.with_untracked(|name| body["public_name"] == name.as_str()) {
            return Box::pin(std::future::ready(Err::<Record, Problem>(same())));
        }
        let (api, path) = (place.api.get_untracked(), place.path.get_untracked());
        api.post(&path, &body)
    };
    let done = move |page: Record| {
        said.say("The page has another name.");
        // Its name ends its address.
        let address = page.text("public_url");
        name.set(address.rsplit('/').next().unwrap_or_default().to_owned());
    };
    view! {
        <Fill open title="Give the page another name".to_owned() label="Rename" form=Form::plain("rename") schema="publish/rename"
            start=Callback::new(move |()| json!({"public_name": name.get_untracked()})) send=Callback::new(send) done=Callback::new(done)
            below=ViewFn::from(warning)/>
    }
    .into_any()
}

/// Why the name that the page has is no other one.
fn same() -> Problem {
    let place = "public_name".to_owned();
    Problem {
        notes: vec![(place, "the page has this name already".to_owned())],
        ..Problem::local("nothing was changed")
    }
}

/// What becomes of what leads to the page.
fn warning() -> AnyView {
    view! {
        <p>"Links, frames and programs that know the old name are led on to the new one, until another page of the organization takes the old name or this page is taken down."</p>
    }
    .into_any()
}
