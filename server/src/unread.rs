//! What an answer leaves of its request's body. Who is answered before the body was read may have it still on the way: the
//! connection would have to end, and the caller's next request with it. So what is left is taken off the wire if it is
//! little; else the answer says that the connection ends. And what is read comes at a pace: whoever sends slower is cut off,
//! for each keeps one of the requests that may be under way.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream, Bytes, HttpBody},
    extract::Request,
    http::{HeaderMap, header},
};
use futures::{StreamExt, future, stream};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes that are taken off the wire for nobody.
const MOST: u64 = 64 << 10;

/// The pieces of a body, for whoever reads it and for what comes after.
struct Pieces {
    stream: BodyDataStream,
    ended: bool,
}

/// A body that somebody else reads.
type Shared = Arc<Mutex<Pieces>>;

fn poll(pieces: &Shared, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, axum::Error>>> {
    let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
    if pieces.ended {
        return Poll::Ready(None);
    }
    let piece = ready!(pieces.stream.poll_next_unpin(context));
    pieces.ended = piece.is_none();
    Poll::Ready(piece)
}

/// What is left of a body when its request is answered.
pub struct Rest(Option<Shared>);

/// Keeps hold of the body of a request. It is still read piece by piece, as it comes, and at a pace where one is asked for.
pub fn watch(request: Request, pace: Option<Pace>) -> (Request, Rest) {
    if request.body().is_end_stream() {
        return (request, Rest(None));
    }
    let (parts, body) = request.into_parts();
    let pieces = Arc::new(Mutex::new(Pieces {
        stream: body.into_data_stream(),
        ended: false,
    }));
    let rest = (!ends(&parts.headers)).then(|| Arc::clone(&pieces));
    let mut pace = pace;
    let next = move |context: &mut Context<'_>| {
        let piece = poll(&pieces, context);
        match &mut pace {
            Some(pace) => pace.keep(piece, context),
            None => piece,
        }
    };
    let body = Body::from_stream(stream::poll_fn(next));
    (Request::from_parts(parts, body), Rest(rest))
}

/// Bytes a second that a sender of a body keeps up at least, the first seconds aside.
const SLOWEST: u64 = 16 << 10;

/// The sender of a body was waited for too long.
#[derive(Debug)]
pub struct TooSlow;

impl std::fmt::Display for TooSlow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the body came too slowly")
    }
}

impl std::error::Error for TooSlow {}

/// Whether it was for that that a body could not be read.
pub fn is_too_slow(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// How long the sender of a body was waited for, and is. What its reader takes is not counted.
pub struct Pace {
    /// That everybody has to begin with.
    first: Duration,
    received: u64,
    waited: Duration,
    since: Option<Instant>,
    late: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// With so many seconds to begin with.
    pub const fn new(seconds: u64) -> Self {
        Self {
            first: Duration::from_secs(seconds),
            received: 0,
            waited: Duration::ZERO,
            since: None,
            late: None,
        }
    }

    /// The piece, or the error of who is too slow.
    fn keep(
        &mut self,
        piece: Poll<Option<Result<Bytes, axum::Error>>>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, axum::Error>>> {
        if let Poll::Ready(piece) = piece {
            self.waited += self
                .since
                .take()
                .map_or(Duration::ZERO, |since| since.elapsed());
            let bytes = piece.as_ref().and_then(|piece| piece.as_ref().ok());
            self.received += bytes.map_or(0, |bytes| bytes.len() as u64);
            return Poll::Ready(piece);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let allowed = self.first + Duration::from_secs(self.received / SLOWEST);
        let end = since + allowed.saturating_sub(self.waited);
        let late = self.late.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if late.deadline() != end {
            late.as_mut().reset(end);
        }
        ready!(late.as_mut().poll(context));
        Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
    }
}

/// Whether the caller ends the connection after this request.
fn ends(headers: &HeaderMap) -> bool {
    let connection = headers.get(header::CONNECTION);
    let words = connection.and_then(|words| words.to_str().ok());
    words.is_some_and(|words| {
        let mut words = words.split(',');
        words.any(|word| word.trim().eq_ignore_ascii_case("close"))
    })
}

impl Rest {
    /// Takes what is left if it is little and comes in time; whether the next request can follow.
    pub async fn take(self, patience: Duration) -> bool {
        let Some(pieces) = self.0 else {
            return true;
        };
        if announced(&pieces) > MOST {
            return false;
        }
        let taking = async {
            let mut taken = 0;
            while let Some(piece) = future::poll_fn(|context| poll(&pieces, context)).await {
                let Ok(piece) = piece else {
                    return false;
                };
                taken += piece.len() as u64;
                if taken > MOST {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(patience, taking)
            .await
            .unwrap_or(false)
    }
}

/// How much is to come at least.
fn announced(pieces: &Shared) -> u64 {
    let pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
    if pieces.ended {
        return 0;
    }
    HttpBody::size_hint(&pieces.stream).lower()
}
