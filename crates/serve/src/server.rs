//! Server: accepting connections, answering requests, and shutting down.

use crate::answer::{Answer, AnswerBody};
use crate::answers::Answers;
use crate::background::{self, JobKind};
use crate::body::Received;
use crate::connection::{Busy, TimeLimits, TimedStream, Transport};
use crate::encoding::{Encoding, Written, compressed};
use crate::error::StartError;
use crate::heads::MOST_FIELDS;
use crate::listen::{self, ListenAddr, Listener, Protocol, SocketFile};
use crate::log::{Level, Log};
use crate::refusal::{Cause, Refusal};
use crate::repository::{IndexEntry, Repository};
use crate::service::Service;
use crate::settings::Configuration;
use crate::settings::Control;
use crate::shared::{LifeStage, Shared};
use crate::tls::Acceptors;
use crate::tokens::Tokens;
use crate::traces::Span;
use crate::{endpoints, grpc, rest, status};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mxrt_engine::Engine;
use mxrt_graph::BuildOptions;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Interval at which the shutdown checks whether requests are left.
const LOOK: Duration = Duration::from_millis(5);
/// Pause after an error of accepting, such as a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Shortest interval between log lines about errors of accepting.
const ACCEPT_LINES: Duration = Duration::from_secs(10);
/// Shortest interval between scans of the repository's folder.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// Time that connections get at the end for the rest of their last responses.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Time that the last log lines get to be written.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Number of requests that a connection of HTTP/2 may have concurrently.
const STREAMS: u32 = 256;
/// Bytes of a body that may arrive before they are read, also the limit for all bodies of a
/// connection of HTTP/2.
const WINDOW: u32 = 1 << 20;
/// Largest head of a request, in bytes.
const HEAD: usize = 64 << 10;
/// Largest head of a request over HTTP/2, in bytes after decompression and with 32 for each field.
const HTTP2_HEAD: u32 = 16 << 10;
/// Time after which a silent client of HTTP/2 is pinged. It gets the same time to answer.
const SILENCE: Duration = Duration::from_secs(20);

/// Guard that counts a connection while it exists.
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

/// Running server. Dropping it ends it at once.
pub struct Server {
    shared: Arc<Shared>,
    places: Vec<(Protocol, ListenAddr)>,
    files: Mutex<Vec<SocketFile>>,
    runtime: Mutex<Option<Runtime>>,
    /// process that started it; a forked child has none of its threads
    process: u32,
}

impl Server {
    /// Loads the models of a configuration, listens, and answers requests from threads of its own.
    pub fn start(
        engine: &'static Engine,
        plans: BuildOptions,
        configuration: &Configuration,
    ) -> Result<Server, StartError> {
        let config = configuration.server.clone();
        listen::ports(&config)?;
        rest::set_up_allocator();
        let log = Log::new(config.logs, config.log_requests).map_err(StartError::Threads)?;
        let tokens = config.tokens.clone().map(|file| Tokens::new(file, &log)).transpose();
        let tokens = tokens.map_err(StartError::Files)?;
        let acceptors = Acceptors::new(&config, &log)?;
        let given = configuration.specs().map_err(StartError::Settings)?;
        let repository = Repository::new(engine, plans, configuration, given, log);
        repository.start().map_err(StartError::Models)?;
        let bound = listen::bind(&config)?;
        let runtime = io_runtime(config.io_threads, engine.cores()).map_err(StartError::Threads)?;
        let shared = Arc::new(Shared::new(Service::new(engine, repository, config), tokens));
        // Each socket holds a place for the next connection that it accepts.
        let connections = shared.service.config.connections.max(bound.len()).min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(connections));
        let (mut places, mut files) = (Vec::new(), Vec::new());
        let inside = runtime.enter();
        for bound in bound {
            let speaks = bound.speaks;
            places.push((speaks, bound.place.clone()));
            let (listener, file) = bound.listener().map_err(StartError::Threads)?;
            files.extend(file);
            let tls = acceptors.of(speaks);
            runtime.spawn(accept(Door { shared: shared.clone(), speaks, tls }, listener, connections.clone()));
        }
        spawn_watchers(&runtime, &shared);
        drop(inside);
        if !configuration.quiet {
            shared.service.repository.started();
        }
        let files = Mutex::new(files);
        Ok(Server { shared, places, files, runtime: Mutex::new(Some(runtime)), process: std::process::id() })
    }

    /// Returns the addresses on which it listens, each with its protocol.
    pub fn places(&self) -> &[(Protocol, ListenAddr)] {
        &self.places
    }

    /// Returns the first TCP address with this protocol.
    pub fn address(&self, speaks: Protocol) -> Option<SocketAddr> {
        self.places.iter().find_map(|(spoken, place)| match place {
            ListenAddr::Tcp(address) if *spoken == speaks => Some(*address),
            _ => None,
        })
    }

    /// Returns the metadata of all models that serve, as a JSON list.
    pub fn models(&self) -> String {
        self.shared.service.repository.describe()
    }

    /// Returns all models and versions with their state.
    pub fn index(&self) -> Vec<IndexEntry> {
        self.shared.service.index()
    }

    /// Loads again the models whose files have changed, and those that were given by path. A
    /// version that does not load leaves the present one in service. The models take their settings
    /// from `configuration` if there is one. Changed settings of the server itself need a restart,
    /// and a log line says so.
    pub fn reload(&self, configuration: Option<&Configuration>) -> Result<(), String> {
        let service = &self.shared.service;
        if let Some(configuration) = configuration {
            service.repository.tell(configuration.of_models().clone(), configuration.specs()?);
            for key in configuration.differs_from(&service.config) {
                let words = format!("the new value of {key} counts when the server starts again");
                service.repository.log().line(Level::Warning, &words);
            }
        }
        service.repository.reload();
        Ok(())
    }

    /// Loads a model: the present versions in the repository, or its files again.
    pub fn load(&self, name: &str) -> Result<(), Refusal> {
        self.shared.service.repository.load(name)
    }

    /// Takes a model out of service. Requests that have begun still complete.
    pub fn unload(&self, name: &str) -> Result<(), Refusal> {
        self.shared.service.repository.unload(name)
    }

    /// Takes the spans of requests that have ended since the last call. There are none unless
    /// `traces` is set.
    pub fn spans(&self) -> Vec<Span> {
        self.shared.service.traces.take()
    }

    /// Refuses new requests from now on, and reports that the server is not ready. Requests that
    /// have begun continue.
    pub fn drain(&self) {
        self.shared.service.drain();
        self.enter(LifeStage::Draining);
    }

    /// Waits until no inference requests are left, and all their responses are with the system, for
    /// at most `patience`. Returns whether none are left.
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

    /// Ends the server. Requests that have begun get `grace` to complete, and their clients to take
    /// the responses, then connections are closed. Returns whether all requests were answered.
    /// Calls after the first do nothing.
    pub fn stop(&self, grace: Duration) -> bool {
        if self.process != std::process::id() {
            return true;
        }
        self.drain();
        let answered = self.wait_drained(grace);
        self.enter(LifeStage::Closing);
        let begin = Instant::now();
        while self.shared.connections() > 0 && begin.elapsed() < LAST_ANSWERS {
            std::thread::sleep(LOOK);
        }
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.shared.service.repository.log().flush(LAST_LINES);
        answered
    }

    fn enter(&self, stage: LifeStage) {
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
            // A forked child does not have the threads of the runtime.
            Some(runtime) => std::mem::forget(runtime),
            None => {}
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?}, {:?})", self.places, *self.shared.stage.borrow())
    }
}

/// Spawns what watches the repository's folder, and the memory at rest.
fn spawn_watchers(runtime: &Runtime, shared: &Arc<Shared>) {
    if shared.service.repository.control() == Control::Poll {
        runtime.spawn(poll(shared.clone()));
    }
    runtime.spawn(rest::watch(shared.clone()));
}

/// Starts the threads that read and write connections, and lets as many as the cores allow work in
/// the background. Whatever a thread keeps of the engine is made at its start, when there is memory.
fn io_runtime(threads: usize, cores: usize) -> io::Result<Runtime> {
    let threads = threads.max(1);
    background::room_for(threads).map_err(|_| io::ErrorKind::OutOfMemory)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .on_thread_start(mxrt_engine::prepare_thread)
        .max_blocking_threads(background::threads(cores))
        .thread_name("mxrt-serve")
        .enable_io()
        .enable_time()
        .build()
}

/// Settings that all connections of a listening socket share.
#[derive(Clone)]
struct Door {
    shared: Arc<Shared>,
    speaks: Protocol,
    tls: Option<TlsAcceptor>,
}

/// Scans the repository's folder periodically, until the server drains.
async fn poll(shared: Arc<Shared>) {
    let mut stage = shared.stage.subscribe();
    loop {
        let pause = shared.service.config.poll.max(SHORTEST_PAUSE);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stage.wait_for(|stage| *stage != LifeStage::Serving) => return,
        }
        let service = shared.service.clone();
        // A scan that panics changes nothing, and the next one may succeed.
        let look = move || {
            service.repository.look();
            Ok(())
        };
        let _ = shared.service.background.run(JobKind::Change, None, look).await;
    }
}

async fn accept(door: Door, listener: Listener, places: Arc<Semaphore>) {
    let mut stage = door.shared.stage.subscribe();
    let mut line: Option<Instant> = None;
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stage.wait_for(|stage| *stage == LifeStage::Closing) => return,
        };
        match accepted {
            Ok(stream) => {
                let counted = Counted::new(&door.shared);
                let door = door.clone();
                tokio::spawn(async move {
                    begin(door, stream).await;
                    drop((place, counted));
                });
            }
            // The client has already gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // The lacking resource is released when connections end.
            Err(error) => {
                if line.is_none_or(|line| line.elapsed() >= ACCEPT_LINES) {
                    line = Some(Instant::now());
                    let words = format!("new connections wait ({error}); open ones are served");
                    door.shared.service.repository.log().line(Level::Warning, &words);
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Performs the TLS handshake if TLS is on, then serves the connection. A failed handshake affects
/// only its client.
async fn begin(door: Door, stream: Box<dyn Transport>) {
    let Some(tls) = &door.tls else { return serve(door, stream).await };
    let limit = door.shared.service.config.header_timeout;
    if let Ok(Ok(stream)) = timeout(limit, tls.accept(stream)).await {
        serve(door, Box::new(stream)).await;
    }
}

async fn serve(door: Door, stream: Box<dyn Transport>) {
    let Door { shared, speaks, .. } = door;
    let config = &shared.service.config;
    let limits = TimeLimits { idle: config.idle_timeout, head: config.header_timeout, write: config.body_timeout };
    let (stream, phase) = TimedStream::new(stream, limits);
    let mut stage = shared.stage.subscribe();
    let service = service_fn(|request: Request<Incoming>| {
        let (head, checked) = shared.heads.charge(&request);
        let (request, rest) = Received::of(request);
        let busy = phase.busy(rest, head);
        let shared = shared.clone();
        async move {
            let request = checked.map(|()| request);
            Ok::<_, Infallible>(match speaks {
                Protocol::Http => answer(shared, request, busy, endpoints::Paths::Open).await,
                Protocol::Admin => answer(shared, request, busy, endpoints::Paths::Admin).await,
                Protocol::Grpc => grpc::answer(shared, request, busy).await,
            })
        }
    });
    let builder = connections_of(speaks);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stage.wait_for(|stage| *stage == LifeStage::Closing) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Limits of the connections with a protocol.
pub(crate) fn connections_of(speaks: Protocol) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_headers(MOST_FIELDS).max_buf_size(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(SILENCE)
        .max_concurrent_streams(STREAMS)
        // A gateway whose users leave together keeps the connection for its other users.
        .max_pending_accept_reset_streams(STREAMS as usize)
        .max_header_list_size(HTTP2_HEAD)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if speaks == Protocol::Grpc { builder.http2_only() } else { builder }
}

async fn answer(
    shared: Arc<Shared>,
    request: Result<Request<Received>, Refusal>,
    busy: Busy,
    paths: endpoints::Paths,
) -> Response<AnswerBody> {
    let service = shared.service.clone();
    let request = match request {
        Ok(request) => request,
        Err(refusal) => {
            let version = if busy.is_http2() { Version::HTTP_2 } else { Version::HTTP_11 };
            return refused(refusal, version, false, busy, &service.answers);
        }
    };
    let (version, head) = (request.version(), request.method() == Method::HEAD);
    let encoding = Encoding::accepted(request.headers()).filter(|_| service.config.compress);
    let made = match endpoints::route(shared, request, paths).await {
        Ok(answer) => written(&service, encoding, answer).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok((answer, Written { bytes, charge, encoding })) => {
            let mut response = whole_or_head(charge.pay(bytes, answer.begun), busy, head);
            let headers = response.headers_mut();
            if let Some(encoding) = encoding {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
                headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
            }
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
            for (name, value) in answer.headers {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    headers.insert(name, value);
                }
            }
            response
        }
        Err(refusal) => refused(refusal, version, head, busy, &service.answers),
    }
}

/// Takes the body out of an answer, and compresses it for a client that accepts that.
async fn written(
    service: &Service,
    encoding: Option<Encoding>,
    mut answer: Answer,
) -> Result<(Answer, Written), Refusal> {
    let bytes = std::mem::take(&mut answer.body);
    let charge = answer.charge.take().map_or_else(|| service.answers.reserve(bytes.len()), Ok)?;
    let written = compressed((&service.answers, &service.background), encoding, bytes, charge, 0).await?;
    Ok((answer, written))
}

/// Makes a response with a body, or with only its length if the method is HEAD.
fn whole_or_head(bytes: Bytes, busy: Busy, head: bool) -> Response<AnswerBody> {
    let length = bytes.len();
    let mut response = Response::new(AnswerBody::new(if head { Bytes::new() } else { bytes }, busy));
    if head {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn refused(refusal: Refusal, version: Version, head: bool, busy: Busy, answers: &Arc<Answers>) -> Response<AnswerBody> {
    let body = serde_json::json!({ "error": refusal.message, "code": refusal.code }).to_string().into_bytes();
    let bytes = answers.count(body.len()).pay(body, None);
    let mut response = whole_or_head(bytes, busy, head);
    *response.status_mut() = status::of_http(refusal.cause);
    let headers = response.headers_mut();
    if let Some(value) = refusal.allow.and_then(|allow| HeaderValue::from_str(&allow).ok()) {
        headers.insert(ALLOW, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = refusal.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.cause == Cause::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // HTTP/2 has no such header, as other requests of the connection continue.
    if refusal.close && version != Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
