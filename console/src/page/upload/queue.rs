//! The files that are sent to a bucket: three at a time, each by an announcement, its bytes and a confirmation. A file that
//! fails holds up no other.

mod announcing;

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use serde_json::json;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Blob, XmlHttpRequest};

use self::announcing::announcement;
use super::{LISTED, Told, carry, refused, request};
use crate::{
    api::{Api, Problem},
    part::Dropped,
    record::{Record, plain},
    text,
};

const AT_ONCE: usize = 3;

/// A longer file is sent in parts, so that one that fails goes on where it was.
const IN_ONE: i64 = 16 << 20;

/// How often a file waits for a busy server, and for how many seconds at most.
const WAITS: usize = 5;
const PATIENCE: u32 = 60;

#[derive(Clone)]
pub(super) enum State {
    Waiting,
    Moving,
    Done(&'static str),
    Failed(Problem),
}

/// One file on its way.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    pub(super) number: usize,
    pub(super) file: StoredValue<Dropped, LocalStorage>,
    pub(super) size: i64,
    pub(super) share: RwSignal<f64>,
    pub(super) state: RwSignal<State>,
    /// What carries its bytes.
    request: StoredValue<Option<XmlHttpRequest>, LocalStorage>,
    /// Where it is confirmed, once its bytes have arrived.
    arrived: StoredValue<Option<String>>,
    /// Where it is announced, while its parts are on their way.
    begun: StoredValue<Option<String>>,
}

impl Sending {
    fn new(number: usize, file: Dropped) -> Self {
        Self {
            number,
            size: file.file.size() as i64,
            file: StoredValue::new_local(file),
            share: RwSignal::new(0.0),
            state: RwSignal::new(State::Waiting),
            request: StoredValue::new_local(None),
            arrived: StoredValue::new(None),
            begun: StoredValue::new(None),
        }
    }
}

/// All files together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) files: usize,
    bytes: i64,
    done: usize,
    done_bytes: i64,
    pub(super) failed: usize,
}

impl Sums {
    pub(super) fn told(self) -> String {
        let Self {
            files,
            bytes,
            done,
            done_bytes,
            failed,
        } = self;
        let (done_bytes, bytes) = (text::size(done_bytes), text::size(bytes));
        let failed = match failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let files = text::counted(files as i64, "file", "files");
        format!("{done} of {files}, {done_bytes} of {bytes}{failed}")
    }
}

/// Whose bucket takes the files.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) api: Api,
    pub(super) bucket: String,
    pub(super) schema: Option<Record>,
}

/// Those that wait. It outlives the page: what was begun is brought to its end.
type Waiting = Rc<RefCell<VecDeque<(Dropped, Sending)>>>;

#[derive(Clone, Copy)]
pub(super) struct Queue {
    /// Those of the list.
    pub(super) files: RwSignal<Vec<Sending>>,
    moving: RwSignal<Vec<Sending>>,
    pub(super) sums: RwSignal<Sums>,
    waiting: StoredValue<Waiting, LocalStorage>,
    working: StoredValue<usize>,
    numbers: StoredValue<usize>,
    target: Signal<Target>,
    done: Callback<Sums>,
}

impl Queue {
    /// `done` is called whenever nothing is left to send.
    pub(super) fn new(target: Signal<Target>, done: Callback<Sums>) -> Self {
        Self {
            files: RwSignal::new(Vec::new()),
            moving: RwSignal::new(Vec::new()),
            sums: RwSignal::new(Sums::default()),
            waiting: StoredValue::new_local(Waiting::default()),
            working: StoredValue::new(0),
            numbers: StoredValue::new(0),
            target,
            done,
        }
    }

    pub(super) fn add(self, files: Vec<Dropped>) {
        let first = self.numbers.get_value();
        self.numbers.set_value(first + files.len());
        let new = (first..).zip(files);
        let new: Vec<_> = new.map(|(at, file)| Sending::new(at, file)).collect();
        self.sums.update(|sums| {
            sums.files += new.len();
            sums.bytes += new.iter().map(|one| one.size).sum::<i64>();
        });
        self.files.update(|all| all.extend(&new));
        self.send_all(new);
    }

    fn send_all(self, files: Vec<Sending>) {
        let waiting = self.waiting.get_value();
        let files = files.into_iter().map(|one| (one.file.get_value(), one));
        waiting.borrow_mut().extend(files);
        let busy = self.working.get_value();
        let wanted = AT_ONCE.min(busy + waiting.borrow().len());
        self.working.set_value(wanted.max(busy));
        for _ in busy..wanted {
            spawn_local(self.drain(waiting.clone(), self.target.get_untracked()));
        }
    }

    /// Sends one file after the other until none is left.
    async fn drain(self, waiting: Waiting, to: Target) {
        loop {
            let next = waiting.borrow_mut().pop_front();
            let Some((file, one)) = next else { break };
            let _ = one.state.try_set(State::Moving);
            let _ = self.moving.try_update(|all| all.push(one));
            let sent = self.patiently(&to, &file, one).await;
            self.end(one, sent);
        }
        let left = self.working.try_update_value(|busy| {
            *busy -= 1;
            *busy
        });
        if left == Some(0) {
            self.done.run(self.sums.get_untracked());
        }
    }

    /// Waits where the server says for how long. What is left out meanwhile is not sent.
    async fn patiently(
        self,
        to: &Target,
        file: &Dropped,
        one: Sending,
    ) -> Result<&'static str, Problem> {
        for _ in 0..WAITS {
            match self.send(to, file, one).await {
                Err(Problem {
                    retry_after: Some(seconds),
                    ..
                }) if seconds <= PATIENCE => TimeoutFuture::new(seconds.max(1) * 1000).await,
                ended => return ended,
            }
            if self.lacks(one) {
                return Err(Problem::default());
            }
        }
        self.send(to, file, one).await
    }

    fn end(self, one: Sending, sent: Result<&'static str, Problem>) {
        let other = |all: &mut Vec<Sending>| all.retain(|other| other.number != one.number);
        let _ = self.moving.try_update(other);
        if self.lacks(one) {
            return;
        }
        let worked = sent.is_ok();
        let _ = self.sums.try_update(|sums| match worked {
            true => {
                sums.done += 1;
                sums.done_bytes += one.size;
            }
            false => sums.failed += 1,
        });
        let _ = one.state.try_set(match sent {
            Ok(note) => State::Done(note),
            Err(problem) => State::Failed(problem),
        });
        let many = self.sums.try_get_untracked();
        if worked && many.is_some_and(|sums| sums.files > LISTED) {
            let _ = self.files.try_update(other);
        }
    }

    /// Whether the file was left out meanwhile. Where the page is gone, nothing was.
    fn lacks(self, one: Sending) -> bool {
        let known = |all: &Vec<Sending>| all.iter().any(|other| other.number == one.number);
        self.files.try_with_untracked(known) == Some(false)
    }

    pub(super) fn failed(self) -> Vec<Sending> {
        let failed = |one: &&Sending| {
            one.state
                .with_untracked(|now| matches!(now, State::Failed(_)))
        };
        self.files
            .with_untracked(|all| all.iter().filter(failed).copied().collect())
    }

    pub(super) fn again(self, files: Vec<Sending>) {
        self.sums.update(|sums| sums.failed -= files.len());
        for one in &files {
            one.share.set(0.0);
            one.state.set(State::Waiting);
        }
        self.send_all(files);
    }

    /// Leaves a file out. One whose bytes are moving is stopped.
    pub(super) fn remove(self, one: Sending) {
        let failed = one
            .state
            .with_untracked(|now| matches!(now, State::Failed(_)));
        self.files
            .update(|all| all.retain(|other| other.number != one.number));
        self.sums.update(|sums| {
            sums.files -= 1;
            sums.bytes -= one.size;
            sums.failed -= usize::from(failed);
        });
        let waiting = self.waiting.get_value();
        waiting
            .borrow_mut()
            .retain(|(_, other)| other.number != one.number);
        if let Some(request) = one.request.get_value() {
            let _ = request.abort();
        }
    }

    /// How much of all bytes has arrived.
    pub(super) fn share(self) -> f64 {
        let Sums {
            bytes, done_bytes, ..
        } = self.sums.get();
        let moved = |one: &Sending| one.share.get() * one.size as f64;
        let moved: f64 = self.moving.with(|all| all.iter().map(moved).sum());
        (done_bytes as f64 + moved) / bytes.max(1) as f64
    }

    /// Sends one file and says how it ended.
    async fn send(
        self,
        to: &Target,
        file: &Dropped,
        one: Sending,
    ) -> Result<&'static str, Problem> {
        if let Some(path) = one.arrived.try_get_value().flatten() {
            // The bytes are there. An answer that was lost on its way is given once more.
            match to.api.post(&path, &json!({})).await {
                Ok(_) => {
                    let _ = one.share.try_set(1.0);
                    return Ok("uploaded");
                }
                Err(problem) if is_passing(&problem) => return Err(problem),
                Err(_) => drop(one.arrived.try_set_value(None)),
            }
        }
        let path = match one.begun.try_get_value().flatten() {
            Some(path) => path,
            None => match self.announce(to, file, one).await? {
                Some(path) => path,
                None => {
                    let _ = one.share.try_set(1.0);
                    return Ok("already there");
                }
            },
        };
        if one.size > IN_ONE {
            self.send_parts(to, file, one, &path).await?;
        }
        if self.lacks(one) {
            return Err(Problem::default());
        }
        let path = format!("{path}/confirm");
        let _ = one.arrived.try_set_value(Some(path.clone()));
        let _ = one.begun.try_set_value(None);
        to.api.post(&path, &json!({})).await?;
        let _ = one.share.try_set(1.0);
        Ok("uploaded")
    }

    /// Announces a file, and sends it where it goes in one piece. Answers where the upload is; nothing where the bucket has
    /// the file.
    async fn announce(
        self,
        to: &Target,
        file: &Dropped,
        one: Sending,
    ) -> Result<Option<String>, Problem> {
        let (body, media) = announcement(file, to.schema.as_ref())?;
        let path = format!("/v1/buckets/{}/uploads", text::escape(&to.bucket));
        let upload = to.api.post(&path, &body).await?;
        if upload.flag("is_duplicate") || upload.flag("skipped_unique_key") {
            return Ok(None);
        }
        let path = format!("{path}/{}", text::escape(&upload.text("upload_id")));
        if one.size > IN_ONE {
            let _ = one.begun.try_set_value(Some(path.clone()));
            return Ok(Some(path));
        }
        let url = address(&upload)?;
        let headers = [("Content-Type".to_owned(), media)];
        let whole = Told {
            share: one.share,
            from: 0.0,
            long: 1.0,
        };
        let bytes: &Blob = &file.file;
        self.send_bytes(one, &url, &headers, (bytes, whole)).await?;
        Ok(Some(path))
    }

    /// Sends the parts of a file that are not there yet.
    async fn send_parts(
        self,
        to: &Target,
        file: &Dropped,
        one: Sending,
        path: &str,
    ) -> Result<(), Problem> {
        let parts = to.api.post(&format!("{path}/parts"), &json!({})).await;
        if parts.as_ref().is_err_and(|problem| !is_passing(problem)) {
            // The upload is no more: the next try begins anew.
            let _ = one.begun.try_set_value(None);
        }
        for part in parts?.list("parts") {
            let at = |member: &str| part.float(member).unwrap_or(0.0);
            let (first, end) = (at("first_byte"), at("last_byte") + 1.0);
            let total = one.size as f64;
            let told = Told {
                share: one.share,
                from: first / total,
                long: (end - first) / total,
            };
            if part.flag("is_there") {
                told.tell(1.0);
                continue;
            }
            let headers = part.record("headers").members().into_iter();
            let headers: Vec<_> = headers
                .map(|(name, value)| (name, plain(&value.0)))
                .collect();
            let bytes = file.file.slice_with_f64_and_f64(first, end);
            let bytes = bytes.map_err(|_| refused())?;
            let url = address(&part)?;
            self.send_bytes(one, &url, &headers, (&bytes, told)).await?;
        }
        Ok(())
    }

    /// Sends bytes by a request that stops when the file is left out.
    async fn send_bytes(
        self,
        one: Sending,
        url: &str,
        headers: &[(String, String)],
        (bytes, told): (&Blob, Told),
    ) -> Result<(), Problem> {
        if self.lacks(one) {
            return Err(Problem::default());
        }
        let request = request()?;
        let _ = one.request.try_set_value(Some(request.clone()));
        let carried = carry(&request, url, headers, bytes, told).await;
        let _ = one.request.try_set_value(None);
        carried
    }
}

/// Where bytes go.
fn address(of: &Record) -> Result<String, Problem> {
    of.opt("presigned_url")
        .ok_or_else(|| Problem::local("the server gave no address for the bytes"))
}

/// Whether the same call may be answered otherwise later.
fn is_passing(problem: &Problem) -> bool {
    problem.kind == "network" || problem.retry_after.is_some() || problem.status >= 500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_arrived_is_sent_again_only_where_it_is_refused() {
        let answered = |status| Problem {
            status,
            ..Default::default()
        };
        assert!(is_passing(&answered(500)));
        assert!(is_passing(&answered(503)));
        assert!(!is_passing(&answered(404)));
        let busy = Problem {
            retry_after: Some(1),
            ..answered(429)
        };
        assert!(is_passing(&busy));
    }

    #[test]
    fn the_total_tells_what_failed() {
        let sums = Sums {
            files: 3,
            bytes: 4096,
            done: 2,
            done_bytes: 1024,
            failed: 0,
        };
        assert_eq!(sums.told(), "2 of 3 files, 1.0 KB of 4.0 KB");
        let failed = Sums { failed: 1, ..sums };
        assert!(failed.told().ends_with(", 1 failed"));
    }
}
