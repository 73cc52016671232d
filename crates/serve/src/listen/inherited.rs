//! Sockets that systemd opened and passed to the process, by its environment variables.

use super::{ListenAddr, Protocol, Socket};
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// First of the descriptors that systemd passes.
const FIRST: RawFd = 3;

/// Whether the sockets were taken, as a descriptor can have only one owner.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the sockets that systemd passed. Those with the name `grpc` speak gRPC.
pub(super) fn sockets() -> io::Result<Vec<(Protocol, Socket, ListenAddr)>> {
    let wrong = |words: &str| io::Error::new(ErrorKind::InvalidInput, words.to_owned());
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str| variable(name).and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Err(wrong("LISTEN_PID is not this process: it was handed no sockets"));
    }
    let count = number("LISTEN_FDS").filter(|count| (1..=64).contains(count));
    let count = count.ok_or_else(|| wrong("LISTEN_FDS is not from 1 to 64"))?;
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Err(wrong("another server of this process has taken them"));
    }
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let descriptors = (FIRST..).take(count as usize);
    descriptors
        .map(|descriptor| {
            let speaks = if names.next() == Some("grpc") { Protocol::Grpc } else { Protocol::Http };
            let (socket, place) = listening(owned(descriptor)?)?;
            Ok((speaks, socket, place))
        })
        .collect()
}

#[allow(unsafe_code)]
fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: it reads and sets flags of a descriptor, which need not be open.
    let set = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as the call above shows, and systemd's protocol gives it to this process;
    // `TAKEN` sees to it that it is taken once.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn listening(descriptor: OwnedFd) -> io::Result<(Socket, ListenAddr)> {
    let tcp = TcpListener::from(descriptor);
    if let Ok(address) = tcp.local_addr() {
        return Ok((Socket::Tcp(tcp), ListenAddr::Tcp(address)));
    }
    let unix = UnixListener::from(OwnedFd::from(tcp));
    let path = unix.local_addr()?.as_pathname().map_or_else(PathBuf::new, PathBuf::from);
    Ok((Socket::Unix(unix), ListenAddr::Unix(path)))
}
