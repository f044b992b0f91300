//! A search told stage by stage, for the script of pages whose owner wants that (`extensions.progress`): server-sent events,
//! the last of which is the page itself. Without script, and on other pages, the page is all there is.

use std::convert::Infallible;
use std::pin::Pin;

use axum::body::to_bytes;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::mpsc;

use crate::{Page, Step};

/// Steps that wait for a slow reader.
pub const WAITING: usize = 8;

type Running = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The search and what it tells. It runs while its answer is read: a visitor who goes away ends it.
struct Following {
    running: Option<Running>,
    told: mpsc::Receiver<Step>,
    /// What the search came to, until it is told.
    end: Option<Response>,
}

/// Whether searches of this page are told stage by stage.
pub fn is_told(page: &Page) -> bool {
    let extensions = page.display_config.extensions.as_ref();
    let told = extensions.and_then(|extensions| extensions.get("progress")?.as_bool());
    told.unwrap_or(false)
}

/// Whether the script asks for it.
pub fn is_asked(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    accepted.is_some_and(|kinds| kinds == "text/event-stream")
}

/// Tells what `told` brings, then what `running` answers. The search begins here: who asks is known to this request alone.
pub async fn follow(running: Running, told: mpsc::Receiver<Step>) -> Response {
    let mut following = Following {
        running: Some(running),
        told,
        end: None,
    };
    let first = following.next().await;
    let events = stream::unfold((first, following), |(first, mut following)| async move {
        let event = match first {
            Some(event) => event,
            None => following.next().await?,
        };
        Some((Ok::<_, Infallible>(event), (None, following)))
    });
    let reply = Sse::new(events).keep_alive(KeepAlive::default());
    ([(header::CACHE_CONTROL, "no-store")], reply).into_response()
}

impl Following {
    async fn next(&mut self) -> Option<Event> {
        if let Some(running) = &mut self.running {
            tokio::select! {
                biased;
                Some(step) = self.told.recv() => return Some(told(&step)),
                reply = running => {
                    self.running = None;
                    self.end = Some(reply);
                }
            }
        }
        // What was told before the end comes before it.
        if let Ok(step) = self.told.try_recv() {
            return Some(told(&step));
        }
        Some(whole(self.end.take()?).await)
    }
}

fn told(step: &Step) -> Event {
    let data = json!({"at": step.at, "of": step.of, "found": step.found, "ms": step.ms});
    Event::default().event("step").data(data.to_string())
}

/// The page as one line of JSON: a text.
async fn whole(reply: Response) -> Event {
    // The page was written by us a moment ago: it is as long as it is, and nothing keeps it from being read.
    let body = to_bytes(reply.into_body(), usize::MAX).await;
    let html = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    Event::default().event("page").data(json!(html).to_string())
}
