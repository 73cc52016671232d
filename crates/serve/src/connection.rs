//! The stream of a connection, with limits of time that hyper does not have.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Waits for the first byte of a request.
const IDLE: u8 = 0;
/// Waits for the rest of its head.
const HEAD: u8 = 1;
/// A request is answered, whose body has a limit of its own.
const BUSY: u8 = 2;

const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// What a connection does; shared with what answers its requests.
#[derive(Debug, Default)]
pub(crate) struct Phase(AtomicU8);

impl Phase {
    /// A request is being answered until the result is dropped.
    pub(crate) fn busy(self: &Arc<Phase>) -> Busy {
        self.0.store(BUSY, Ordering::Relaxed);
        Busy(self.clone())
    }
}

/// See [`Phase::busy`].
#[derive(Debug)]
pub(crate) struct Busy(Arc<Phase>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.store(IDLE, Ordering::Relaxed);
    }
}

/// A stream that fails where the client is too slow.
pub(crate) struct TimedStream {
    stream: TcpStream,
    phase: Arc<Phase>,
    limits: Limits,
    /// the phase that `reading` belongs to
    timed: u8,
    reading: Pin<Box<Sleep>>,
    /// runs while the client takes nothing of an answer
    writing: Option<Pin<Box<Sleep>>>,
}

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) write: Duration,
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream, limits: Limits) -> (TimedStream, Arc<Phase>) {
        let phase = Arc::new(Phase::default());
        // The first request has no reason to come late.
        let reading = Box::pin(sleep_until(Instant::now() + limits.head));
        let stream = TimedStream { stream, phase: phase.clone(), limits, timed: IDLE, reading, writing: None };
        (stream, phase)
    }

    fn enter(&mut self, phase: u8) {
        if self.timed != phase {
            self.timed = phase;
            let limit = if phase == HEAD { self.limits.head } else { self.limits.idle };
            self.reading.as_mut().reset(Instant::now() + limit);
        }
    }

    /// The end of an answer begins the time without a request. hyper then reads only when it is
    /// woken, which the timer sees to.
    fn watch_idle(&mut self, cx: &mut Context<'_>) {
        if self.timed != IDLE && self.phase.0.load(Ordering::Relaxed) == IDLE {
            self.enter(IDLE);
            if self.reading.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
    }

    fn write_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.watch_idle(cx);
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), cx) {
            self.writing = None;
            return Poll::Ready(written);
        }
        let limit = self.limits.write;
        let sleep = self.writing.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + limit)));
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the client takes nothing of the answer")))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let phase = self.phase.0.load(Ordering::Relaxed);
        self.enter(phase);
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buf) {
            if phase == IDLE && buf.filled().len() > before {
                self.phase.0.store(HEAD, Ordering::Relaxed);
                self.enter(HEAD);
            }
            return Poll::Ready(read);
        }
        if phase == BUSY {
            return Poll::Pending;
        }
        ready!(self.reading.as_mut().poll(cx));
        if phase == HEAD {
            // The client may still read: nothing was answered on this connection meanwhile.
            let _ = self.stream.try_write(TOO_SLOW);
        }
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "no request came in time")))
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write_with(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_with(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write_with(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write_with(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}
