//! Time limits of connections. The clock stands still while anything can run, so that the load of
//! the machine does not matter.

use super::*;
use crate::account::Account;
use crate::answer::AnswerBody;
use crate::answers::Answers;
use crate::body::{Received, RequestBody};
use crate::heads::Heads;
use crate::listen::Protocol;
use crate::queue::Queue;
use crate::server::connections_of;
use crate::settings::Config;
use crate::status;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::pending;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{sleep, timeout_at};

const LIMITS: TimeLimits =
    TimeLimits { idle: Duration::from_secs(75), head: Duration::from_secs(10), write: Duration::from_secs(30) };
/// Bytes that the connection holds for a reader.
const PIPE: usize = 64 << 10;
/// Frames of HTTP/2.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW: u8 = 8;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Lets everything run that can: only then the clock moves.
async fn rest() {
    sleep(Duration::from_millis(1)).await;
}

/// Answers a request by its path: with as many bytes as it says, or never, or with the status of a
/// small body.
async fn answer(request: Request<Received>, busy: Busy, answers: Arc<Answers>) -> Response<AnswerBody> {
    let path = request.uri().path().to_owned();
    let (length, status) = match path.as_str() {
        "/never" => pending().await,
        "/small" => {
            let config = Config { max_body: 1 << 30, ..Config::default() };
            let account = Account::open(&Queue::new("the queue", 1, 1 << 20));
            let mut body = RequestBody::small(request.into_body(), &config, &account).expect("no length is given");
            (0, status::of_http(body.take(None).await.expect_err("it never ends").cause).as_u16())
        }
        length => (length[1..].parse().expect("a length"), 200),
    };
    let body = AnswerBody::new(answers.count(length).pay(vec![7; length], None), busy);
    Response::builder().status(status).body(body).expect("a response")
}

/// Stream that takes all that is written at once, and passes it on when it is flushed.
struct Holding {
    stream: DuplexStream,
    held: Vec<u8>,
}

impl AsyncRead for Holding {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Holding {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.held.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Holding { stream, held } = &mut *self;
        while !held.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, held))?;
            held.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Serves a connection. Returns the client's end of it, and the answers that are charged.
fn serve(limits: TimeLimits) -> (DuplexStream, Arc<Answers>) {
    let (client, server) = duplex(PIPE);
    (client, serve_over(Box::new(server), limits))
}

fn serve_over(stream: Box<dyn Transport>, limits: TimeLimits) -> Arc<Answers> {
    let (stream, phase) = TimedStream::new(stream, limits);
    let (answers, heads) = (Answers::new(1 << 20), Arc::new(Heads::default()));
    let held = answers.clone();
    tokio::spawn(async move {
        let service = service_fn(|request: Request<Incoming>| {
            let (head, _) = heads.charge(&request);
            let (request, rest) = Received::of(request);
            let (busy, answers) = (phase.busy(rest, head), answers.clone());
            async move { Ok::<_, Infallible>(answer(request, busy, answers).await) }
        });
        let _ = connections_of(Protocol::Http).serve_connection(TokioIo::new(stream), service).await;
    });
    held
}

/// Client that reads frames, and takes bytes only where it gives windows.
struct Http2Client {
    stream: DuplexStream,
    /// bytes that have arrived and are no whole frame
    arrived: Vec<u8>,
    /// bytes of each response
    taken: HashMap<u32, usize>,
}

impl Http2Client {
    /// Connects. Each response begins with this window.
    async fn new(stream: DuplexStream, window: u32) -> Http2Client {
        let mut client = Http2Client { stream, arrived: Vec::new(), taken: HashMap::new() };
        client.stream.write_all(HTTP2).await.expect("a server");
        let initial = [&[0, 4][..], &window.to_be_bytes()].concat();
        client.send(SETTINGS, 0, 0, &initial).await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, content: &[u8]) {
        let length = u32::try_from(content.len()).expect("a short frame").to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat();
        self.stream.write_all(&frame).await.expect("a server");
    }

    async fn ask(&mut self, stream: u32, path: &str) {
        let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "here")];
        let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        let block: Vec<u8> =
            fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
        self.send(HEADERS, 5, stream, &block).await;
    }

    /// Lets the server send more bytes of a response, or with 0 of all together.
    async fn give(&mut self, stream: u32, bytes: u32) {
        self.send(WINDOW, 0, stream, &bytes.to_be_bytes()).await;
    }

    /// Reads for some time. Returns whether the server has kept the connection.
    async fn read(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let whole = self.arrived.first_chunk::<4>().map(|head| 9 + (u32::from_be_bytes(*head) >> 8) as usize);
            if let Some(length) = whole.filter(|length| self.arrived.len() >= *length) {
                let frame: Vec<u8> = self.arrived.drain(..length).collect();
                let stream = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]);
                match (frame[3], frame[4] & 1) {
                    (DATA, _) => *self.taken.entry(stream).or_default() += length - 9,
                    (SETTINGS, 0) => self.send(SETTINGS, 1, 0, &[]).await,
                    (PING, 0) => self.send(PING, 1, 0, &frame[9..]).await,
                    _ => {}
                }
                continue;
            }
            match timeout_at(end, self.stream.read_buf(&mut self.arrived)).await {
                Ok(Ok(1..)) => {}
                Ok(_) => return false,
                Err(_) => return true,
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_has_an_end_although_others_begin() {
    let (stream, answers) = serve(LIMITS);
    let mut client = Http2Client::new(stream, 0).await;
    client.ask(1, "/500000").await;
    let begin = Instant::now();
    let mut number = 3;
    while client.read(seconds(10)).await && number < 40 {
        assert!(answers.bytes() >= 500_000);
        client.ask(number, "/10").await;
        if !client.read(seconds(1)).await {
            break;
        }
        client.send(RESET, 0, number, &8u32.to_be_bytes()).await;
        number += 2;
    }
    let time = begin.elapsed();
    assert!((seconds(29)..seconds(35)).contains(&time), "{time:?}");
    rest().await;
    assert_eq!((answers.bytes(), client.taken.get(&1)), (0, None));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_which_a_byte_is_taken_has_an_end() {
    let (stream, answers) = serve(LIMITS);
    let mut client = Http2Client::new(stream, 1).await;
    // The transport has all of it, and a second request keeps the connection.
    client.ask(1, "/100000").await;
    client.ask(3, "/never").await;
    assert!(client.read(seconds(29)).await, "{:?}", client.taken);
    client.give(1, 1).await;
    assert!(!client.read(seconds(5)).await, "a byte is not progress");
    rest().await;
    assert_eq!((answers.bytes(), client.taken[&1]), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_taken_slowly_and_steadily_arrives_over_http2() {
    let (stream, answers) = serve(LIMITS);
    let mut client = Http2Client::new(stream, 16 << 10).await;
    client.ask(1, "/200000").await;
    while client.taken.get(&1).is_none_or(|taken| *taken < 200_000) {
        assert!(client.read(seconds(25)).await, "{:?}", client.taken);
        client.give(1, 16 << 10).await;
        client.give(0, 16 << 10).await;
    }
    assert_eq!(answers.bytes(), 0);
    // It is idle since the last bytes.
    assert!(client.read(seconds(40)).await);
    assert!(!client.read(LIMITS.idle).await);
}

#[tokio::test(start_paused = true)]
async fn each_of_many_answers_has_its_turn() {
    let (stream, answers) = serve(LIMITS);
    let mut client = Http2Client::new(stream, 1 << 20).await;
    let numbers: Vec<u32> = (0..40).map(|number| 2 * number + 1).collect();
    for number in &numbers {
        client.ask(*number, "/20000").await;
    }
    // All of them together wait for the bytes that the client takes: less than 16 KiB a second.
    let all = 20_000 * numbers.len();
    while client.taken.values().sum::<usize>() < all {
        assert!(client.read(seconds(1)).await, "{:?}", client.taken);
        client.give(0, 14 << 10).await;
    }
    assert_eq!(answers.bytes(), 0);
}

/// Takes an answer of HTTP/1.1 in pieces, each after a pause. Returns its bytes, and the time from
/// the last of them to the end of the connection.
async fn take_slowly(mut client: DuplexStream, length: usize, pause: Duration) -> (usize, Duration) {
    let head = format!("GET /{length} HTTP/1.1\r\nhost: here\r\n\r\n");
    client.write_all(head.as_bytes()).await.expect("a server");
    let (mut taken, mut piece, mut last) = (0, vec![0; PIPE], Instant::now());
    while let Ok(read @ 1..) = client.read(&mut piece).await {
        taken += piece[..read].iter().filter(|byte| **byte == 7).count();
        last = Instant::now();
        if taken < length {
            sleep(pause).await;
        }
    }
    (taken, last.elapsed())
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_taken_slowly_and_steadily_arrives_over_http1() {
    let limits = TimeLimits { idle: seconds(1), ..LIMITS };
    for holds in [false, true] {
        let (client, stream) = duplex(PIPE);
        let stream: Box<dyn Transport> =
            if holds { Box::new(Holding { stream, held: Vec::new() }) } else { Box::new(stream) };
        serve_over(stream, limits);
        let (taken, rest) = take_slowly(client, 1_000_000, Duration::from_millis(700)).await;
        assert_eq!(taken, 1_000_000);
        // It is idle since the server has passed the last bytes on, one pause earlier at most.
        assert!((Duration::from_millis(200)..=seconds(1)).contains(&rest), "{rest:?}");
    }
    let (taken, _) = take_slowly(serve(limits).0, 1_000_000, seconds(31)).await;
    assert!(taken < 300_000, "{taken} bytes of a client that stops");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_while_an_answer_is_taken_has_its_time_limit() {
    let (mut client, _) = serve(LIMITS);
    client.write_all(b"GET /100000 HTTP/1.1\r\nhost: here\r\n\r\n").await.expect("a server");
    rest().await;
    client.write_all(b"GET /1").await.expect("a server");
    let mut all = vec![0; 150_000];
    sleep(seconds(20)).await;
    let (mut read, begin) = (0, Instant::now());
    while let Ok(more @ 1..) = client.read(&mut all[read..]).await {
        read += more;
    }
    assert!(read > 100_000, "{read}");
    let time = begin.elapsed();
    assert!((seconds(9)..seconds(12)).contains(&time), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_small_body_of_unknown_length_has_the_time_of_a_small_one() {
    let (mut client, _) = serve(LIMITS);
    let begin = Instant::now();
    let head = b"POST /small HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n";
    client.write_all(head).await.expect("a server");
    let mut status = [0; 12];
    client.read_exact(&mut status).await.expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 408");
    let time = begin.elapsed();
    assert!((seconds(30)..seconds(32)).contains(&time), "{time:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_slow_is_told_in_json() {
    let (mut client, _) = serve(LIMITS);
    client.write_all(b"GET /7 HTTP/1.1\r\n").await.expect("a server");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 408 ") && head.ends_with(&format!("content-length: {}", body.len())));
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["code"], "MX-REQUEST");
}
