//! HTTP for those who look after the server: three pages, one request to a connection.
//!
//! A connection has a request of at most 8 KiB, without a body, and half a minute for all of it. There are at most so many:
//! with one more the oldest ends, so that strangers who are slow keep no probe out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::gate::{Gate, Visitor};
use super::latches::Latches;
use crate::metrics;
use crate::peer::Peer;

/// Connections at a time.
const MOST: usize = 64;
/// Bytes of a request: the least that hyper can be told.
const HEADERS: usize = 8 * 1024;
/// How long a request may take to arrive,
const HEADERS_TIME: Duration = Duration::from_secs(5);
/// and until its answer was taken.
const TIME: Duration = Duration::from_secs(30);
/// The wait between attempts when the system cannot give us a connection.
const PAUSE: Duration = Duration::from_millis(100);
/// The same is told once in so long.
const QUIET: Duration = Duration::from_secs(10);

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What the pages are made of.
#[derive(Clone)]
struct Site {
    latches: Arc<Latches>,
    gate: Gate,
    /// One at a time gathers metrics: it is a thread for each, and the figures are the same.
    gathering: Arc<Mutex<()>>,
}

/// Answers requests, for ever.
pub(super) async fn serve(socket: TcpListener, latches: Arc<Latches>, gate: Gate) {
    let site = Site { latches, gate: gate.clone(), gathering: Arc::default() };
    let pages = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .fallback(nothing_here)
        .with_state(site);
    // Dropped with this task, they end.
    let mut connections = JoinSet::new();
    let (mut by_age, mut told) = (VecDeque::new(), None::<Instant>);
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => {
                    make_room(&mut by_age);
                    debug!(%peer, "admin connection");
                    by_age.push_back(connections.spawn(answer(stream, Peer::Tcp(peer), gate.clone(), pages.clone())));
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    if told.is_none_or(|told| told.elapsed() >= QUIET) {
                        warn!(%error, "cannot accept connections to the admin address; they wait");
                        told = Some(Instant::now());
                    }
                    sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Ends the oldest connection where there are as many as there may be.
fn make_room(by_age: &mut VecDeque<AbortHandle>) {
    by_age.retain(|connection| !connection.is_finished());
    while by_age.len() >= MOST
        && let Some(oldest) = by_age.pop_front()
    {
        oldest.abort();
    }
}

async fn answer(stream: TcpStream, peer: Peer, gate: Gate, pages: Router) {
    match timeout(TIME, serve_one(stream, peer, gate, pages)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%peer, error, "admin connection lost"),
        Err(_) => debug!(%peer, "an admin connection has taken too long"),
    }
}

async fn serve_one(
    stream: TcpStream,
    peer: Peer,
    gate: Gate,
    pages: Router,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (stream, visitor) = timeout(HEADERS_TIME, gate.enter(stream, peer)).await??;
    let pages = pages.layer(Extension(visitor));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS_TIME).max_buf_size(HEADERS).keep_alive(false);
    http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages)).await?;
    Ok(())
}

async fn livez() -> Response {
    page(StatusCode::OK, "ok\n".into())
}

async fn readyz(State(site): State<Site>, uri: Uri) -> Response {
    let verbose = uri.query().is_some_and(|query| query.split('&').any(|word| word.starts_with("verbose")));
    let (is_ready, lines) = site.latches.report(verbose);
    page(if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, lines)
}

async fn metrics(State(site): State<Site>, Extension(visitor): Extension<Visitor>, headers: HeaderMap) -> Response {
    if let Err(refused) = site.gate.admit(visitor, &headers).await {
        return refused;
    }
    let _turn = site.gathering.lock().await;
    let Some(shared) = site.latches.shared() else {
        return page(StatusCode::SERVICE_UNAVAILABLE, site.latches.report(false).1);
    };
    // Files are asked about.
    match spawn_blocking(move || metrics::text(&shared)).await {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, METRICS)], text).into_response(),
        Err(error) => page(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

async fn nothing_here() -> Response {
    page(StatusCode::NOT_FOUND, "there are /livez, /readyz and /metrics\n".into())
}

fn page(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, TEXT)], text).into_response()
}
