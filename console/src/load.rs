//! Data that a page waits for: the last good answer stays while the next is fetched, late replies are dropped.

use std::{cell::Cell, future::Future, rc::Rc};

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use leptos_router::{
    NavigateOptions,
    hooks::{use_location, use_navigate, use_query_map},
};
use wasm_bindgen_futures::spawn_local;

use crate::{
    api::{Answer, Api, Problem},
    leave::Unsaved,
    record::{Record, page},
};

/// One answer and the state of asking for it.
#[derive(Clone, Copy)]
pub struct Load {
    pub value: RwSignal<Option<Result<Record, Problem>>>,
    pub busy: RwSignal<bool>,
    /// How often it was asked for again, and whether by itself the last time.
    again: RwSignal<(u32, bool)>,
    /// How often in a row that failed for a reason which passes.
    misses: RwSignal<u32>,
}

/// Milliseconds until what moves is asked for again, and how often that doubles while the server does not answer.
const PAUSE: u32 = 1_000;
const DOUBLED: u32 = 5;

impl Load {
    /// Asks now, and again whenever a signal that `ask` reads changes.
    pub fn new<Fut>(ask: impl Fn() -> Fut + 'static) -> Self
    where
        Fut: Future<Output = Result<Record, Problem>> + 'static,
    {
        Self::boxed(Box::new(move || Box::pin(ask())))
    }

    /// Asks for what `path` names at the moment; has nothing while it is empty.
    pub fn of(api: impl Fn() -> Api + 'static, path: impl Fn() -> String + 'static) -> Self {
        Self::wanted(move || {
            let path = path();
            (!path.is_empty()).then(|| api().get(&path))
        })
    }

    /// Asks for what is wanted, and has nothing while nothing is: what a dialog showed last is not what it opens with.
    pub fn wanted(ask: impl Fn() -> Option<Answer> + 'static) -> Self {
        Self::begun(0, true, Box::new(ask))
    }

    fn boxed(ask: Box<dyn Fn() -> Answer>) -> Self {
        Self::begun(0, false, Box::new(move || Some(ask())))
    }

    fn begun(millis: u32, forgets: bool, ask: Box<dyn Fn() -> Option<Answer>>) -> Self {
        let load = Self {
            value: RwSignal::new(None),
            busy: RwSignal::new(true),
            again: RwSignal::new((0, false)),
            misses: RwSignal::new(0),
        };
        let latest = Rc::new(Cell::new(0u32));
        Effect::new(move |seen: Option<u32>| {
            let (times, itself) = load.again.get();
            let itself = itself && seen != Some(times);
            let answer = ask();
            let ticket = latest.get() + 1;
            latest.set(ticket);
            load.busy.set(answer.is_some());
            let Some(answer) = answer else {
                if forgets && load.value.with_untracked(Option::is_some) {
                    load.value.set(None);
                }
                return times;
            };
            let latest = latest.clone();
            spawn_local(async move {
                if millis > 0 {
                    TimeoutFuture::new(millis).await;
                }
                // What is outdated before it was sent is not sent.
                if latest.get() != ticket {
                    return;
                }
                let answer = answer.await;
                if latest.get() == ticket {
                    load.take(answer, itself);
                }
            });
            times
        });
        load
    }

    /// Asks once nothing has changed for so many milliseconds; keeps what it has while `ask` wants nothing.
    pub fn settled(millis: u32, ask: impl Fn() -> Option<Answer> + 'static) -> Self {
        Self::begun(millis, false, Box::new(ask))
    }

    /// The page may be gone by now. What nobody asked for and nobody got changes nothing that is shown.
    fn take(self, answer: Result<Record, Problem>, itself: bool) {
        if itself && answer.as_ref().is_err_and(Problem::passes) {
            let _ = self.misses.try_update(|n| *n += 1);
        } else {
            let _ = self.misses.try_set(0);
            let _ = self.value.try_set(Some(answer));
        }
        let _ = self.busy.try_set(false);
    }

    pub fn reload(&self) {
        self.ask(false);
    }

    fn ask(self, itself: bool) {
        let _ = self.again.try_update(|(times, by)| {
            *times += 1;
            *by = itself;
        });
    }

    /// Whether what is shown is older than it should be, since the server does not answer.
    pub fn is_late(&self) -> bool {
        self.misses.get() > 0 && self.value.with(|value| matches!(value, Some(Ok(_))))
    }

    /// The last good answer.
    pub fn good(&self) -> Option<Record> {
        self.value.get().and_then(Result::ok)
    }

    /// Takes an answer that came by another way.
    pub fn put(&self, answer: Record) {
        let _ = self.misses.try_set(0);
        let _ = self.value.try_set(Some(Ok(answer)));
    }

    /// Asks again every second while `active` says so of the last answer, or of a row of it; less often while the server
    /// does not answer.
    pub fn poll_while(self, active: fn(&Record) -> bool) {
        let latest = Rc::new(Cell::new(0u32));
        Effect::new(move |_| {
            let misses = self.misses.get();
            let pause = self
                .value
                .with(|value| pause(value.as_ref()?, misses, active));
            let turn = latest.get() + 1;
            latest.set(turn);
            let Some(pause) = pause else { return };
            let latest = latest.clone();
            spawn_local(async move {
                TimeoutFuture::new(pause).await;
                // An answer that is on its way already, or came meanwhile, has a timer of its own.
                let idle = self.busy.try_get_untracked() == Some(false);
                if idle && latest.get() == turn {
                    self.ask(true);
                }
            });
        });
    }
}

/// Milliseconds until it is asked for again, if it is.
fn pause(value: &Result<Record, Problem>, misses: u32, active: fn(&Record) -> bool) -> Option<u32> {
    let (again, misses) = match value {
        Ok(one) => (active(one) || page(one).0.iter().any(active), misses),
        Err(problem) => (problem.passes(), misses + 1),
    };
    again.then_some(PAUSE << misses.min(DOUBLED))
}

/// A call that changes something: its state and its refusal.
#[derive(Clone, Copy)]
pub struct Change {
    pub busy: RwSignal<bool>,
    pub problem: RwSignal<Option<Problem>>,
}

impl Change {
    pub fn new() -> Self {
        Self {
            busy: RwSignal::new(false),
            problem: RwSignal::new(None),
        }
    }

    /// Runs `call` unless one runs already, and hands its answer on.
    pub fn run(
        self,
        call: impl Future<Output = Result<Record, Problem>> + 'static,
        done: impl FnOnce(Record) + 'static,
    ) {
        self.boxed(Box::pin(call), Box::new(done));
    }

    /// Says what is wrong before anything is sent.
    pub fn refuse(self, message: &str) {
        self.problem.set(Some(Problem::local(message)));
    }

    /// Says what came of it, where that is no fault of the call.
    pub fn refuse_as(self, kind: &str, message: String) {
        let problem = Problem {
            kind: kind.to_owned(),
            message,
            ..Default::default()
        };
        self.problem.set(Some(problem));
    }

    fn boxed(self, call: Answer, done: Box<dyn FnOnce(Record)>) {
        if self.busy.get_untracked() {
            return;
        }
        self.busy.set(true);
        self.problem.set(None);
        spawn_local(async move {
            let answer = call.await;
            let _ = self.busy.try_set(false);
            match answer {
                Ok(value) => done(value),
                Err(problem) => {
                    let _ = self.problem.try_set(Some(problem));
                }
            }
        });
    }
}

type Setter = Box<dyn Fn(&str) + Send + Sync>;
type Go = Box<dyn Fn(&str, NavigateOptions)>;

/// Leads to a page of the console, unless something would be lost that is to be kept.
pub fn navigator() -> impl Fn(&str) + Copy + 'static {
    let (go, unsaved) = (send_wrapper(use_navigate()), expect_context::<Unsaved>());
    move |path: &str| {
        if unsaved.may_leave() {
            go.call(path, NavigateOptions::default());
        }
    }
}

/// A setting kept in the address, so that it survives a reload and can be shared.
#[derive(Clone, Copy)]
pub struct Query {
    pub value: Memo<String>,
    set: StoredValue<Setter>,
}

impl Query {
    pub fn new(name: &'static str) -> Self {
        let query = use_query_map();
        let value = Memo::new(move |_| query.with(|q| q.get(name).unwrap_or_default()));
        let navigate = send_wrapper(use_navigate());
        let path = use_location().pathname;
        let set = move |new: &str| {
            let mut map = query.get_untracked();
            map.remove(name);
            // Another list is another place: its pages start anew.
            let stale: &[&str] = match name {
                "offset" | "from" | "document" | "columns" => &[],
                "log" => &["outcome", "from"],
                "outcome" => &["from"],
                _ => &["offset"],
            };
            for name in stale {
                map.remove(name);
            }
            if !new.is_empty() {
                map.insert(name.to_owned(), new.to_owned());
            }
            let target = format!("{}{}", path.get_untracked(), map.to_query_string());
            // The path in hand has the base already.
            navigate.call(
                &target,
                NavigateOptions {
                    replace: true,
                    scroll: false,
                    resolve: false,
                    ..Default::default()
                },
            );
        };
        Self {
            value,
            set: StoredValue::new(Box::new(set)),
        }
    }

    /// The page may be gone by now: what comes of a call then leads nowhere.
    pub fn set(&self, value: &str) {
        let _ = self.set.try_with_value(|set| set(value));
    }

    pub fn number(&self) -> i64 {
        self.value.with(|v| v.parse().unwrap_or(0))
    }

    /// As `&member=value` for the address of a call; nothing while it is empty.
    pub fn query(self, member: &str) -> String {
        self.value.with(|value| match value.as_str() {
            "" => String::new(),
            value => format!("&{member}={}", crate::text::escape(value)),
        })
    }

    /// Open while the address names something; closing takes the name out of it.
    pub fn is_named(self) -> RwSignal<bool> {
        let open = RwSignal::new(false);
        Effect::new(move |_| open.set(!self.value.get().is_empty()));
        Effect::new(move |_| {
            if !open.get() && !self.value.get_untracked().is_empty() {
                self.set("");
            }
        });
        open
    }
}

/// The router's navigate function, which belongs to this thread, in a form that signals may hold.
#[derive(Clone, Copy)]
struct Navigate(StoredValue<Go, LocalStorage>);

impl Navigate {
    fn call(&self, target: &str, options: NavigateOptions) {
        // The page may be gone by now; then nobody is led away from the next.
        let _ = self.0.try_with_value(|go| go(target, options));
    }
}

fn send_wrapper(navigate: impl Fn(&str, NavigateOptions) + Clone + 'static) -> Navigate {
    Navigate(StoredValue::new_local(Box::new(navigate)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_moves_is_asked_for_again_and_less_often_while_nobody_answers() {
        let moves: fn(&Record) -> bool = |one| one.flag("moves");
        let good = |value| Ok(Record(value));
        let row = good(json!({"results": [{}, {"moves": true}]}));
        let still = good(json!({"results": [{}]}));
        let failed = |status| {
            Err(Problem {
                status,
                ..Default::default()
            })
        };
        let asked = |value, misses| pause(&value, misses, moves);
        assert_eq!(asked(good(json!({"moves": true})), 0), Some(1_000));
        assert_eq!(asked(row, 2), Some(4_000));
        assert_eq!(asked(still, 0), None);
        assert_eq!(asked(failed(502), 0), Some(2_000));
        assert_eq!(asked(failed(0), 40), Some(32_000));
        assert_eq!(asked(failed(404), 0), None);
    }
}
