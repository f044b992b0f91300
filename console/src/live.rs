//! What the server tells as it happens: a stream of events, read while somebody looks at the tab. A browser opens few
//! connections to one host, so tabs in the background keep none.

use gloo_timers::future::TimeoutFuture;
use js_sys::{Reflect, Uint8Array};
use leptos::prelude::document;
use wasm_bindgen::{JsCast, JsValue, closure::Closure};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{AbortController, AbortSignal, ReadableStreamDefaultReader, VisibilityState};

use crate::{api::Api, record::Record};

/// Milliseconds before a stream that ended is opened again, and the most while none opens.
const SHORT: u32 = 1_000;
const LONG: u32 = 60_000;

/// Hands on the data of every event, for as long as it is `wanted`.
pub fn follow(
    api: impl Fn() -> Api + 'static,
    path: &'static str,
    wanted: impl Fn() -> bool + 'static,
    told: impl Fn(Record) + 'static,
) {
    spawn_local(async move {
        let mut wait = SHORT;
        while wanted() {
            if !is_hidden() {
                let heard = listen(&api(), path, &wanted, &told).await;
                wait = if heard { SHORT } else { (wait * 2).min(LONG) };
            }
            TimeoutFuture::new(wait).await;
        }
    });
}

fn is_hidden() -> bool {
    document().visibility_state() == VisibilityState::Hidden
}

/// Reads one stream to its end; whether it told anything.
async fn listen(api: &Api, path: &str, wanted: &impl Fn() -> bool, told: &impl Fn(Record)) -> bool {
    let Ok(stop) = AbortController::new() else {
        return false;
    };
    let hide = {
        let stop = stop.clone();
        Closure::<dyn Fn()>::new(move || {
            if is_hidden() {
                stop.abort();
            }
        })
    };
    let heard = hide.as_ref().unchecked_ref();
    let changes = "visibilitychange";
    let _ = document().add_event_listener_with_callback(changes, heard);
    let anything = read(api, path, &stop.signal(), wanted, told).await;
    let _ = document().remove_event_listener_with_callback(changes, heard);
    stop.abort();
    anything.unwrap_or(false)
}

async fn read(
    api: &Api,
    path: &str,
    signal: &AbortSignal,
    wanted: &impl Fn() -> bool,
    told: &impl Fn(Record),
) -> Option<bool> {
    let response = api.stream(path, signal).await.ok()?;
    let reader = response.body()?.get_reader();
    let reader: ReadableStreamDefaultReader = reader.dyn_into().ok()?;
    let (mut kept, mut anything) = (Vec::new(), false);
    while wanted() {
        let Ok(piece) = JsFuture::from(reader.read()).await else {
            break;
        };
        let value = Reflect::get(&piece, &JsValue::from_str("value")).ok()?;
        if value.is_undefined() {
            break;
        }
        kept.extend(Uint8Array::new(&value).to_vec());
        for one in events(&mut kept) {
            anything = true;
            told(one);
        }
    }
    Some(anything)
}

/// Takes the events that are whole.
fn events(kept: &mut Vec<u8>) -> Vec<Record> {
    let mut found = Vec::new();
    while let Some(end) = kept.windows(2).position(|pair| pair == b"\n\n") {
        let event: Vec<u8> = kept.drain(..end + 2).collect();
        let event = String::from_utf8_lossy(&event);
        let data = event.lines().find_map(|line| line.strip_prefix("data:"));
        let data = data.and_then(|data| serde_json::from_str(data.trim()).ok());
        found.extend(data.map(Record));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::events;

    #[test]
    fn events_come_in_pieces() {
        let mut kept = b"event: unread\ndata: {\"count\":".to_vec();
        assert!(events(&mut kept).is_empty());
        kept.extend(b"3}\n\n:\n\nevent: unread\ndata: {\"count\": 4}\n\nevent");
        let counts: Vec<_> = events(&mut kept)
            .iter()
            .map(|one| one.int("count"))
            .collect();
        assert_eq!(
            (counts, kept.as_slice()),
            (vec![Some(3), Some(4)], &b"event"[..])
        );
    }
}
