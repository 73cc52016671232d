//! Streams of connections, with time limits that hyper does not have.

use crate::body::Rest;
use crate::heads::HeadCharge;
use crate::progress::{OpenAnswer, OpenAnswers};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n\
    content-length: 80\r\n\r\n{\"error\":\"the head of the request was not complete in time\",\"code\":\"MX-REQUEST\"}";
/// Preface of HTTP/2. The head of another request may have a part of it as its beginning.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time, and below it the number of bytes, for which a client that still sends a refused request is
/// read before the connection is closed. A response is lost if unread bytes are left.
const LINGER: Duration = Duration::from_secs(3);
const LINGER_BYTES: usize = 64 << 20;
/// Bytes that are read and discarded before other tasks run.
const LINGER_PIECE: usize = 64 << 10;

/// Stream of a connection: TCP or a Unix socket, with or without TLS.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Next event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// the first byte of a request
    Idle,
    /// the rest of the head of a request
    Head,
    /// the end of a response, and that the client takes it; the body of the request has its own
    /// time limit
    Busy,
}

/// State of a connection, shared with the handlers of its requests.
#[derive(Debug)]
pub(crate) struct Phase {
    /// number of requests that are being answered: at most one, unless the connection speaks HTTP/2
    busy: AtomicUsize,
    /// whether a byte of a head has arrived
    head: AtomicBool,
    http2: AtomicBool,
    /// whether a response was written before all of its request was read
    unread: AtomicBool,
    /// responses that the client still has to take
    answers: Arc<OpenAnswers>,
}

impl Phase {
    fn new() -> Arc<Phase> {
        Arc::new(Phase {
            busy: AtomicUsize::new(0),
            head: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            answers: OpenAnswers::new(),
        })
    }

    /// Marks a request as being answered until the result is dropped. The result keeps the unread
    /// rest of the body: over HTTP/2, dropping that earlier would cancel the response.
    pub(crate) fn busy(self: &Arc<Phase>, rest: Rest, head: HeadCharge) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy { phase: self.clone(), rest, _head: head }
    }

    fn wait(&self) -> Wait {
        if self.is_answering() || !self.answers.is_empty() {
            Wait::Busy
        } else if self.head.load(Ordering::Relaxed) {
            Wait::Head
        } else {
            Wait::Idle
        }
    }

    /// Returns whether a request is being answered, apart from what the client still has to take.
    fn is_answering(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
    }
}

/// Mark of a request that is being answered, see [`Phase::busy`].
#[derive(Debug)]
pub(crate) struct Busy {
    phase: Arc<Phase>,
    rest: Rest,
    _head: HeadCharge,
}

impl Busy {
    /// Starts the time in which the client must take bytes of a response. It ends with the result,
    /// which may outlive this mark: the transport still has bytes when it has taken the response.
    pub(crate) fn open_answer(&self) -> OpenAnswer {
        self.phase.answers.open()
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.phase.http2.load(Ordering::Relaxed)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Ok(rest) = self.rest.try_recv() {
            self.phase.unread.store(true, Ordering::Relaxed);
            // Some clients report an error if a stream of HTTP/2 ends while they send. A connection
            // of HTTP/1.1 lingers as a whole.
            if let (true, Ok(runtime)) = (self.is_http2(), Handle::try_current()) {
                runtime.spawn(timeout(LINGER, pass_over(rest)));
            }
        }
        self.phase.head.store(false, Ordering::Relaxed);
        self.phase.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads and discards the rest of a refused body.
async fn pass_over(mut rest: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = rest.frame().await {
        read += frame.into_data().map_or(0, |data| data.len());
        if read >= LINGER_BYTES {
            return;
        }
    }
}

/// Stream that fails when the client is too slow.
pub(crate) struct TimedStream {
    stream: Box<dyn Transport>,
    phase: Arc<Phase>,
    limits: TimeLimits,
    /// event that `reading` times
    timed: Wait,
    reading: Pin<Box<Sleep>>,
    /// whether bytes were written that the stream below may still hold, as TLS does
    unflushed: bool,
    /// timer that runs while the client takes nothing of a response
    writing: Option<Pin<Box<Sleep>>>,
    /// number of bytes that matched the preface of HTTP/2; none once the protocol is known
    beginning: Option<usize>,
    /// timer that runs while the rest of a refused request is read, see [`LINGER`]; none before
    /// that
    lingering: Option<Pin<Box<Sleep>>>,
    lingered: usize,
}

/// Time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) write: Duration,
}

impl TimedStream {
    pub(crate) fn new(stream: Box<dyn Transport>, limits: TimeLimits) -> (TimedStream, Arc<Phase>) {
        let phase = Phase::new();
        // The first request of a connection has only the time limit of a head.
        let reading = Box::pin(sleep_until(Instant::now() + limits.head));
        let stream = TimedStream {
            stream,
            phase: phase.clone(),
            limits,
            timed: Wait::Idle,
            reading,
            unflushed: false,
            writing: None,
            beginning: Some(0),
            lingering: None,
            lingered: 0,
        };
        (stream, phase)
    }

    fn enter(&mut self, wait: Wait) {
        if self.timed != wait {
            self.timed = wait;
            let limit = if wait == Wait::Head { self.limits.head } else { self.limits.idle };
            self.reading.as_mut().reset(Instant::now() + limit);
        }
    }

    fn is_http2(&self) -> bool {
        self.phase.http2.load(Ordering::Relaxed)
    }

    /// Compares the first bytes with the preface of HTTP/2.
    fn look(&mut self, bytes: &[u8]) {
        let Some(seen) = self.beginning else { return };
        let wanted = &HTTP2[seen..];
        let common = wanted.iter().zip(bytes).take_while(|(wanted, byte)| wanted == byte).count();
        if common == wanted.len() {
            self.phase.http2.store(true, Ordering::Relaxed);
            self.beginning = None;
            // Clients of gRPC connect before they have a request.
            self.reading.as_mut().reset(Instant::now() + self.limits.idle);
            self.phase.head.store(false, Ordering::Relaxed);
            self.timed = Wait::Idle;
        } else {
            self.beginning = (common == bytes.len()).then_some(seen + common);
        }
    }

    /// Returns the next event. Over HTTP/1.1, hyper ends a response when it has its bytes: the
    /// client is not idle before it can have them.
    fn wait(&self) -> Wait {
        if self.unflushed && !self.is_http2() { Wait::Busy } else { self.phase.wait() }
    }

    /// Starts the time of the next request when a response has ended. hyper reads again only when
    /// it is woken, which the timer does.
    fn watch_end(&mut self, cx: &mut Context<'_>) {
        let wait = self.wait();
        if wait != Wait::Busy && self.timed != wait {
            self.enter(wait);
            if self.reading.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
    }

    fn write_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut dyn Transport>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.watch_end(cx);
        if let Poll::Ready(written) = write(Pin::new(&mut *self.stream), cx) {
            self.writing = None;
            return Poll::Ready(written);
        }
        let limit = self.limits.write;
        let sleep = self.writing.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client takes nothing of the answer")))
    }

    /// Reads and discards what a client still sends, until it ends or its time is over. This is for
    /// HTTP/1.1 only: a stream of HTTP/2 ends without the connection.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let unread = self.phase.unread.load(Ordering::Relaxed) || self.phase.wait() == Wait::Head;
        if self.is_http2() || !unread {
            return Poll::Ready(());
        }
        let sleep = self.lingering.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + LINGER)));
        if sleep.as_mut().poll(cx).is_ready() || self.lingered >= LINGER_BYTES {
            return Poll::Ready(());
        }
        let mut place = [std::mem::MaybeUninit::uninit(); 8 << 10];
        let mut read = 0;
        while read < LINGER_PIECE {
            let mut piece = ReadBuf::uninit(&mut place);
            match ready!(Pin::new(&mut *self.stream).poll_read(cx, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => read += piece.filled().len(),
                _ => return Poll::Ready(()),
            }
        }
        self.lingered += read;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Completes when a client of HTTP/2 has taken no bytes of a response for too long. It can stop
    /// taking them without blocking the stream, and take those of other responses.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(limit) = self.phase.answers.limit(self.limits.write).filter(|_| self.is_http2()) {
            if limit <= Instant::now() {
                return Poll::Ready(());
            }
            self.reading.as_mut().reset(limit);
            ready!(self.reading.as_mut().poll(cx));
        }
        Poll::Pending
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let wait = self.wait();
        self.enter(wait);
        if let Poll::Ready(read) = Pin::new(&mut *self.stream).poll_read(cx, buf) {
            self.look(&buf.filled()[before..]);
            // Frames of HTTP/2 need not belong to a request. The first request has the time limit
            // of a head. A connection without requests is idle, whatever else it sends.
            if buf.filled().len() > before && !self.is_http2() && !self.phase.is_answering() {
                self.phase.head.store(true, Ordering::Relaxed);
                let wait = self.wait();
                self.enter(wait);
            }
            return Poll::Ready(read);
        }
        let late = || Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "no request came in time")));
        if wait == Wait::Busy {
            ready!(self.poll_stalled(cx));
            return late();
        }
        ready!(self.reading.as_mut().poll(cx));
        if wait == Wait::Head && !self.is_http2() {
            // The client may still read, as no response was written on this connection meanwhile.
            let _ = Pin::new(&mut *self.stream).poll_write(cx, TOO_SLOW);
            let _ = Pin::new(&mut *self.stream).poll_flush(cx);
        }
        late()
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.unflushed = true;
        self.write_with(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.unflushed = true;
        self.write_with(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_with(cx, |stream, cx| stream.poll_flush(cx)))?;
        self.unflushed = false;
        self.watch_end(cx);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(self.write_with(cx, |stream, cx| stream.poll_shutdown(cx)))?;
        }
        self.poll_linger(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests;
