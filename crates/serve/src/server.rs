//! Accepting connections, and ending.

use crate::config::Config;
use crate::connection::{Busy, Limits, TimedStream};
use crate::endpoints;
use crate::refusal::Refusal;
use crate::repository::Repository;
use crate::service::Service;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mxrt_engine::Engine;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

/// How often the end looks whether requests are still there.
const LOOK: Duration = Duration::from_millis(5);
/// After an error of accepting, such as that there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time that connections get for the rest of their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Whether requests are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Stage {
    Serving,
    /// new requests are refused
    Draining,
    /// connections end
    Closing,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    stage: watch::Sender<Stage>,
    connections: AtomicUsize,
}

impl Shared {
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Counts a connection while it lives.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Counted {
        shared.connections.fetch_add(1, Ordering::SeqCst);
        Counted(shared.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Why a server could not start.
#[derive(Debug)]
pub enum StartError {
    /// It cannot listen there: the address, and why.
    Listen(String, std::io::Error),
    /// Its threads cannot be made.
    Threads(std::io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Listen(address, error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "cannot listen at {address}: another program does; name another port (--port), 0 for a free one"
                )
            }
            StartError::Listen(address, error) => write!(f, "cannot listen at {address}: {error}"),
            StartError::Threads(error) => write!(f, "cannot start the threads of the server: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running server. Dropping it ends it at once.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    runtime: Mutex<Option<Runtime>>,
    /// a forked child has none of its threads
    process: u32,
}

impl Server {
    /// Listens and answers from threads of its own; returns at once.
    pub fn start(engine: &'static Engine, repository: Repository, config: Config) -> Result<Server, StartError> {
        let named = if config.host.contains(':') {
            format!("[{}]:{}", config.host, config.port)
        } else {
            format!("{}:{}", config.host, config.port)
        };
        let listen = || {
            let listener = TcpListener::bind((config.host.as_str(), config.port))?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = listen().map_err(|error| StartError::Listen(named, error))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(config.io_threads.max(1))
            .max_blocking_threads(2 * engine.cores() + 4)
            .thread_name("mxrt-serve")
            .enable_io()
            .enable_time()
            .build()
            .map_err(StartError::Threads)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(StartError::Threads)?
        };
        let shared = Arc::new(Shared {
            service: Service::new(engine, repository, config),
            stage: watch::Sender::new(Stage::Serving),
            connections: AtomicUsize::new(0),
        });
        runtime.spawn(accept(shared.clone(), listener));
        Ok(Server { shared, address, runtime: Mutex::new(Some(runtime)), process: std::process::id() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new requests from now on, and is not ready; requests that have begun go on.
    pub fn drain(&self) {
        self.shared.service.drain();
        self.enter(Stage::Draining);
    }

    /// Waits until no request is left, and at most so long; true if none is.
    pub fn wait_drained(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        while self.shared.service.begun() > 0 {
            if self.process != std::process::id() || begin.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Ends: requests that have begun get so long, then connections are closed. True if every
    /// request was answered. Calls after the first do nothing.
    pub fn stop(&self, grace: Duration) -> bool {
        if self.process != std::process::id() {
            return true;
        }
        self.drain();
        let answered = self.wait_drained(grace);
        self.enter(Stage::Closing);
        let begin = Instant::now();
        while self.shared.connections() > 0 && begin.elapsed() < LAST_ANSWERS {
            std::thread::sleep(LOOK);
        }
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
        answered
    }

    fn enter(&self, stage: Stage) {
        self.shared.stage.send_if_modified(|now| {
            let later = *now < stage;
            if later {
                *now = stage;
            }
            later
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match runtime {
            Some(runtime) if self.process == std::process::id() => runtime.shutdown_background(),
            // Its threads do not exist here.
            Some(runtime) => std::mem::forget(runtime),
            None => {}
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({}, {:?})", self.address, *self.shared.stage.borrow())
    }
}

async fn accept(shared: Arc<Shared>, listener: tokio::net::TcpListener) {
    let places = Arc::new(Semaphore::new(shared.service.config.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let mut stage = shared.stage.subscribe();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stage.wait_for(|stage| *stage == Stage::Closing) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let counted = Counted::new(&shared);
                let shared = shared.clone();
                tokio::spawn(async move {
                    serve(shared, stream).await;
                    drop((place, counted));
                });
            }
            // Running requests give back what is lacking.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // Without it answers wait for acknowledgements; a stream that cannot be set so still works.
    let _ = stream.set_nodelay(true);
    let config = &shared.service.config;
    let limits = Limits { idle: config.idle_timeout, head: config.header_timeout, write: config.body_timeout };
    let (stream, phase) = TimedStream::new(stream, limits);
    let mut stage = shared.stage.subscribe();
    let service = service_fn(|request: Request<Incoming>| {
        let busy = phase.busy();
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(shared, request, busy).await) }
    });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None).max_headers(64).max_buf_size(64 << 10);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // What is wrong with a connection concerns its client alone.
        _ = connection.as_mut() => return,
        _ = stage.wait_for(|stage| *stage == Stage::Closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A body, and text or JSON.
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Answer {
    pub(crate) fn json(value: &serde_json::Value) -> Answer {
        Answer::text(value.to_string().into_bytes(), "application/json")
    }

    pub(crate) fn text(body: Vec<u8>, content_type: &'static str) -> Answer {
        Answer { body, content_type, headers: Vec::new() }
    }

    /// For paths that answer with their status alone.
    pub(crate) fn empty() -> Answer {
        Answer::text(Vec::new(), "text/plain")
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>, busy: Busy) -> Response<AnswerBody> {
    match endpoints::route(shared, request).await {
        Ok(answer) => {
            let mut response = Response::new(AnswerBody::new(answer.body, busy));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
            for (name, value) in answer.headers {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    headers.insert(name, value);
                }
            }
            response
        }
        Err(refusal) => refused(refusal, busy),
    }
}

fn refused(refusal: Refusal, busy: Busy) -> Response<AnswerBody> {
    let body = serde_json::json!({ "error": refusal.message }).to_string().into_bytes();
    let mut response = Response::new(AnswerBody::new(body, busy));
    *response.status_mut() = refusal.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = refusal.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The body of an answer. The connection is busy until it is dropped.
pub(crate) struct AnswerBody {
    bytes: Bytes,
    _busy: Busy,
}

impl AnswerBody {
    fn new(bytes: Vec<u8>, busy: Busy) -> AnswerBody {
        AnswerBody { bytes: bytes.into(), _busy: busy }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
