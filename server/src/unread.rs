//! What an answer leaves of its request's body. Who is answered before the body was read may have it still on the way: the
//! connection would have to end, and the caller's next request with it. So what is left is taken off the wire if it is
//! little; else the answer says that the connection ends.

use std::{
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

/// Keeps hold of the body of a request. It is still read piece by piece, as it comes.
pub fn watch(request: Request) -> (Request, Rest) {
    if request.body().is_end_stream() || ends(request.headers()) {
        return (request, Rest(None));
    }
    let (parts, body) = request.into_parts();
    let pieces = Arc::new(Mutex::new(Pieces {
        stream: body.into_data_stream(),
        ended: false,
    }));
    let read = Arc::clone(&pieces);
    let body = Body::from_stream(stream::poll_fn(move |context| poll(&read, context)));
    (Request::from_parts(parts, body), Rest(Some(pieces)))
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
