//! Sockets that are shut down for all processes when they are dropped. A forked child has a copy of
//! each descriptor: if only the server closed its own, the port would still listen, and clients
//! would wait.

use socket2::SockRef;
use std::io;
use std::net::Shutdown;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};

/// Socket that is shut down when this is dropped.
pub(super) struct Ended<S: AsFd> {
    socket: S,
    /// whether to shut it down; false if other processes own it too
    ends: bool,
}

impl<S: AsFd> Deref for Ended<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.socket
    }
}

impl<S: AsFd> Drop for Ended<S> {
    fn drop(&mut self) {
        if self.ends {
            // The client may have ended it before.
            let _ = SockRef::from(&self.socket).shutdown(Shutdown::Both);
        }
    }
}

/// Listening socket, shut down when dropped.
pub(super) enum Listening {
    Tcp(Ended<TcpListener>),
    Unix(Ended<UnixListener>),
}

impl Listening {
    pub(super) fn tcp(socket: TcpListener, inherited: bool) -> Listening {
        Listening::Tcp(Ended { socket, ends: !inherited })
    }

    pub(super) fn unix(socket: UnixListener, inherited: bool) -> Listening {
        Listening::Unix(Ended { socket, ends: !inherited })
    }
}

/// Stream of a client, shut down when dropped.
pub(super) struct Connected<S: AsFd>(Ended<S>);

impl<S: AsFd> Connected<S> {
    pub(super) fn new(socket: S) -> Connected<S> {
        Connected(Ended { socket, ends: true })
    }
}

impl<S: AsFd + AsyncRead + Unpin> AsyncRead for Connected<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.socket).poll_read(cx, buf)
    }
}

impl<S: AsFd + AsyncWrite + Unpin> AsyncWrite for Connected<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.socket).poll_shutdown(cx)
    }
}
