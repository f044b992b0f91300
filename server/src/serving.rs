//! Connections of callers. The head of each request has its time: whoever sends it a byte at a time, or nothing, holds no
//! connection.

use std::{net::SocketAddr, pin::pin, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
    serve::Listener,
};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use crate::app::{self, App};

/// Takes connections until it is told to close, and ends with the last request that is under way then.
pub async fn serve(mut listener: TcpListener, app: App, closing: CancellationToken) {
    let limits = &app.config().limits;
    let head = Duration::from_secs(limits.head_seconds);
    let patience = Duration::from_secs(limits.request_seconds);
    // Made for no state once, not for each request.
    let router: Router = app::router(app.clone()).with_state(());
    let open = TaskTracker::new();
    loop {
        let (stream, caller) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            () = closing.cancelled() => break,
        };
        cut_slow_readers(&stream, patience);
        let (router, closing) = (router.clone(), closing.clone());
        open.spawn(connection(stream, caller, router, head, closing));
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Answers the requests of one connection.
async fn connection(
    stream: TcpStream,
    caller: SocketAddr,
    router: Router,
    head: Duration,
    closing: CancellationToken,
) {
    let from_caller = move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(caller));
        request
    };
    let service = ServiceExt::<Request>::map_request(router, from_caller);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection broke off");
    }
}

/// Has the system end a connection whose caller takes nothing of an answer for so long: it would hold what is left of the
/// answer for ever.
fn cut_slow_readers(stream: &TcpStream, patience: Duration) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(patience)) {
        tracing::warn!(%error, "callers that do not read are not cut off");
    }
}
