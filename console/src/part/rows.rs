//! What the rows of a list offer: dialogs about one of them, and calls at once.

use leptos::prelude::*;

use super::{Ask, Blank, Column, Empty, Listing, Modal, Toasts};
use crate::{
    api::Answer,
    load::{Change, Load, Query},
    record::Record,
    session::use_session,
    text,
};

/// Something that can be done with a row, and how that is called.
pub struct Act(pub &'static str, pub Box<dyn Fn()>);

impl Act {
    /// As a button of the row of this name.
    pub fn button(self, name: &str) -> AnyView {
        press(self.0, name, self.1)
    }
}

/// One list's rows: a page leaves it in the context for them.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The row that the open dialog is about.
    pub of: RwSignal<Record>,
    /// The call that a button of a row made last.
    pub change: Change,
    load: Load,
    dialogs: StoredValue<Vec<(&'static str, RwSignal<bool>)>>,
}

impl Rows {
    pub fn new(load: Load) -> Self {
        Self {
            of: RwSignal::new(Record::default()),
            change: Change::new(),
            load,
            dialogs: StoredValue::new(Vec::new()),
        }
    }

    /// Whether the dialog of this name is open.
    pub fn dialog(self, verb: &'static str) -> RwSignal<bool> {
        let known =
            |all: &Vec<(&str, RwSignal<bool>)>| Some(all.iter().find(|one| one.0 == verb)?.1);
        if let Some(open) = self.dialogs.with_value(known) {
            return open;
        }
        let open = RwSignal::new(false);
        self.dialogs.update_value(|all| all.push((verb, open)));
        open
    }

    /// A button that opens the dialog of its name about this row.
    pub fn open(self, verb: &'static str, name: &str, of: &Record) -> AnyView {
        self.opens(verb, of).button(name)
    }

    /// Opens the dialog of its name about this row.
    pub fn opens(self, verb: &'static str, of: &Record) -> Act {
        let (open, of) = (self.dialog(verb), of.clone());
        let ask = move || {
            self.of.set(of.clone());
            open.set(true);
        };
        Act(verb, Box::new(ask))
    }

    /// A button that makes a call at once, says so and lists anew.
    pub fn call(
        self,
        verb: &'static str,
        name: &str,
        said: &'static str,
        call: impl Fn() -> Answer + 'static,
    ) -> AnyView {
        self.calls(verb, said, call).button(name)
    }

    /// Makes a call at once, says so and lists anew.
    pub fn calls(
        self,
        verb: &'static str,
        said: &'static str,
        call: impl Fn() -> Answer + 'static,
    ) -> Act {
        let run = self.runner(said);
        Act(verb, Box::new(move || run(call())))
    }

    /// Sends a test through the channels of a row, and says what came of it.
    pub fn tests(self, call: impl Fn() -> Answer + 'static) -> Act {
        let toasts: Toasts = expect_context();
        let on = move || {
            self.change.run(call(), move |answer| {
                let said = told(&answer);
                match answer.flag("success") {
                    true => toasts.say(said),
                    false => self
                        .change
                        .refuse_as("The test did not arrive everywhere", said),
                }
            });
        };
        Act("Send a test", Box::new(on))
    }

    /// Makes a call, says so and lists anew.
    pub fn runner(self, said: &'static str) -> impl Fn(Answer) + Copy + 'static {
        let (toasts, session) = (expect_context::<Toasts>(), use_session());
        move |call| {
            self.change.run(call, move |_| {
                toasts.say(said);
                self.load.reload();
                session.notifications_changed.update(|n| *n += 1);
            });
        }
    }

    pub fn reload(self) {
        self.load.reload();
    }
}

/// What came of a test, channel by channel.
fn told(answer: &Record) -> String {
    let each = answer.list("results").into_iter().map(|one| {
        let channel = match one.text("channel_type").as_str() {
            "slack" => "chat".to_owned(),
            other => other.to_owned(),
        };
        let status = text::words(&one.text("status"));
        format!("{channel} {status}: {}", one.text("message"))
    });
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => "there is no channel to send to".into(),
        false => each.join("; "),
    }
}

/// A small button of a row; those who hear it are told which row.
pub fn press(label: &'static str, name: &str, on: Box<dyn Fn()>) -> AnyView {
    let said = format!("{label} {name}");
    view! { <button type="button" class="btn small" aria-label=said on:click=move |_| on()>{label}</button>" " }.into_any()
}

/// Removes the row in question, after a second thought.
#[component]
pub fn Discard(
    rows: Rows,
    what: &'static str,
    /// What goes with it.
    loses: &'static str,
    /// The member that names a row.
    name: &'static str,
    delete: Callback<Record, Answer>,
) -> AnyView {
    let toasts: Toasts = expect_context();
    let (open, change) = (rows.dialog("Remove"), Change::new());
    let title = Signal::derive(move || format!("Remove {}?", rows.of.get().text(name)));
    let submit = Callback::new(move |()| {
        change.run(delete.run(rows.of.get_untracked()), move |_| {
            open.set(false);
            toasts.say(format!("The {what} is removed"));
            rows.reload();
        });
    });
    view! { <Ask open title label="Remove" danger=true change submit><p>{loses}</p></Ask> }
        .into_any()
}

/// What happened to one row, in a panel beside the list.
#[component]
pub fn Log(
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    load: Load,
    columns: &'static [Column],
    row: fn(Record) -> AnyView,
    blank: Blank,
    offset: Query,
    /// Filters, and what is to be known above the rows.
    above: ViewFn,
) -> AnyView {
    let empty = move || view! { <Empty icon=blank.icon title=blank.title text=blank.text/> };
    view! {
        <Modal open title class="side wide">
            <div class="stack">
                {above.run()}
                <Listing load label="Log" columns row empty=ViewFn::from(empty) offset=Some(offset)/>
            </div>
        </Modal>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{ChannelTestResponse, ChannelTestResult};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn what_came_of_a_test_is_told_channel_by_channel() {
        let one = |channel: &str, status: &str, message: &str| ChannelTestResult {
            channel_type: channel.into(),
            status: status.into(),
            message: message.into(),
            ..Default::default()
        };
        let answer = ChannelTestResponse {
            success: false,
            results: vec![
                one("slack", "delivered", "the receiver answered 200"),
                one("email", "not_configured", "no mail server"),
            ],
        };
        assert_eq!(
            told(&sent(&answer)),
            "chat delivered: the receiver answered 200; email not configured: no mail server"
        );
        assert!(!told(&Record::default()).is_empty());
    }
}
