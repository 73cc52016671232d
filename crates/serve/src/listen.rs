//! Where a server listens: TCP, Unix sockets, and sockets that systemd made.

mod inherited;
mod socket;

use crate::config::Config;
use crate::connection::Transport;
use crate::error::StartError;
use socket::{Connected, Listening};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Connections that wait until they are accepted, as far as the system allows: those of many clients
/// that begin at once. The standard library's 128 make the next ones try again after a second.
const BACKLOG: i32 = 4096;

/// What is spoken at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1 and HTTP/2
    Http,
    /// gRPC
    Grpc,
    /// HTTP, with the paths of those who run the server
    Admin,
}

/// Where a socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// host and port
    Tcp(SocketAddr),
    /// path
    Unix(PathBuf),
}

/// A socket that listens.
enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// A socket that listens, before there are threads for it.
pub(crate) struct Bound {
    pub(crate) speaks: Speaks,
    pub(crate) place: Place,
    socket: Socket,
    /// removed at the end
    file: Option<SocketFile>,
    /// others listen there too, and go on
    inherited: bool,
}

/// The same, of the threads.
pub(crate) struct Listener(Listening);

/// A Unix socket's file, removed when this is dropped.
pub(crate) struct SocketFile {
    path: PathBuf,
    process: u32,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens at all places that the configuration names.
pub(crate) fn bind(config: &Config) -> Result<Vec<Bound>, StartError> {
    if config.inherited {
        let found = inherited::sockets().map_err(|error| StartError::Listen("the sockets of systemd".into(), error))?;
        return Ok(found
            .into_iter()
            .map(|(speaks, socket, place)| Bound { speaks, place, socket, file: None, inherited: true })
            .collect());
    }
    let mut bound = Vec::new();
    let grpc_port = config.grpc_port().map_err(StartError::Settings)?;
    for (speaks, port, option) in [
        (Speaks::Http, config.port, "--port"),
        (Speaks::Grpc, grpc_port, "--grpc-port"),
        (Speaks::Admin, config.admin_port, "--admin-port"),
    ] {
        let Some(port) = port else { continue };
        let named = match config.host.contains(':') {
            true => format!("[{}]:{port}", config.host),
            false => format!("{}:{port}", config.host),
        };
        bound.push(tcp(speaks, &config.host, port).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => StartError::InUse(named, option),
            _ => StartError::Listen(named, error),
        })?);
    }
    for (speaks, path) in [(Speaks::Http, &config.unix), (Speaks::Grpc, &config.grpc_unix)] {
        let Some(path) = path else { continue };
        bound.push(unix(speaks, path).map_err(|error| StartError::Listen(path.display().to_string(), error))?);
    }
    if bound.is_empty() {
        let why = io::Error::new(ErrorKind::InvalidInput, "there is neither a port nor a socket");
        return Err(StartError::Listen("nothing".to_owned(), why));
    }
    Ok(bound)
}

fn tcp(speaks: Speaks, host: &str, port: u16) -> io::Result<Bound> {
    let listener = std::net::TcpListener::bind((host, port))?;
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    let place = Place::Tcp(listener.local_addr()?);
    Ok(Bound { speaks, place, socket: Socket::Tcp(listener), file: None, inherited: false })
}

fn unix(speaks: Speaks, path: &Path) -> io::Result<Bound> {
    let is_socket = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    // A server that was killed leaves its file.
    if is_socket(path)
        && std::os::unix::net::UnixStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    let file = Some(SocketFile { path: path.to_owned(), process: std::process::id() });
    Ok(Bound { speaks, place: Place::Unix(path.to_owned()), socket: Socket::Unix(listener), file, inherited: false })
}

impl Bound {
    /// Hands the socket to the runtime that is entered now.
    pub(crate) fn listener(self) -> io::Result<(Listener, Option<SocketFile>)> {
        let listening = match self.socket {
            Socket::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Listening::tcp(tokio::net::TcpListener::from_std(socket)?, self.inherited)
            }
            Socket::Unix(socket) => {
                socket.set_nonblocking(true)?;
                Listening::unix(tokio::net::UnixListener::from_std(socket)?, self.inherited)
            }
        };
        Ok((Listener(listening), self.file))
    }
}

impl Listener {
    pub(crate) async fn accept(&self) -> io::Result<Box<dyn Transport>> {
        Ok(match &self.0 {
            Listening::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Without it answers wait for acknowledgements; a stream that cannot be set so
                // still works.
                let _ = stream.set_nodelay(true);
                Box::new(Connected::new(stream))
            }
            Listening::Unix(listener) => Box::new(Connected::new(listener.accept().await?.0)),
        })
    }
}
