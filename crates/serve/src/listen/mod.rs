//! Listening sockets: TCP, Unix sockets, and sockets that systemd passes to the process.

mod inherited;
mod socket;

use crate::connection::Transport;
use crate::error::StartError;
use crate::settings::Config;
use socket::{Connected, Listening};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Length of the queue of connections that wait to be accepted, as far as the system allows. With
/// the standard library's 128, clients that connect in a burst would have to try again after a
/// second.
const BACKLOG: i32 = 4096;

/// Protocol and endpoints that a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 and HTTP/2
    Http,
    /// gRPC
    Grpc,
    /// HTTP, with the additional endpoints for operators
    Admin,
}

/// Address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// host and port
    Tcp(SocketAddr),
    /// path
    Unix(PathBuf),
}

/// Listening socket.
enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

/// Listening socket that has no threads yet.
pub(crate) struct Bound {
    pub(crate) speaks: Protocol,
    pub(crate) place: ListenAddr,
    socket: Socket,
    /// file of a Unix socket, removed at the end
    file: Option<SocketFile>,
    /// whether other processes share the socket and continue to listen on it
    inherited: bool,
}

/// Listening socket of the runtime's threads.
pub(crate) struct Listener(Listening);

/// File of a Unix socket. It is removed when this is dropped by the process that bound it.
pub(crate) struct SocketFile {
    path: PathBuf,
    process: u32,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Another process may have removed it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Binds all addresses of the configuration.
pub(crate) fn bind(config: &Config) -> Result<Vec<Bound>, StartError> {
    if config.inherited {
        let found = inherited::sockets().map_err(|error| StartError::Listen("the sockets of systemd".into(), error))?;
        return Ok(found
            .into_iter()
            .map(|(speaks, socket, place)| Bound { speaks, place, socket, file: None, inherited: true })
            .collect());
    }
    let mut bound = Vec::new();
    for (speaks, port, option) in ports(config)? {
        let named = match config.host.contains(':') {
            true => format!("[{}]:{port}", config.host),
            false => format!("{}:{port}", config.host),
        };
        bound.push(tcp(speaks, &config.host, port).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => StartError::InUse(named, option),
            _ => StartError::Listen(named, error),
        })?);
    }
    for (speaks, path) in [(Protocol::Http, &config.unix), (Protocol::Grpc, &config.grpc_unix)] {
        let Some(path) = path else { continue };
        bound.push(unix(speaks, path).map_err(|error| StartError::Listen(path.display().to_string(), error))?);
    }
    Ok(bound)
}

/// Returns the ports with the options that change them; 0 stands for a free one. Ports that are the
/// same, or nothing to listen on, are an error of the settings.
pub(crate) fn ports(config: &Config) -> Result<Vec<(Protocol, u16, &'static str)>, StartError> {
    let grpc_port = config.grpc_port().map_err(StartError::Settings)?;
    let mut ports: Vec<(Protocol, u16, &'static str)> = Vec::new();
    for (speaks, port, option) in [
        (Protocol::Http, config.port, "--port"),
        (Protocol::Grpc, grpc_port, "--grpc-port"),
        (Protocol::Admin, config.admin_port, "--admin-port"),
    ] {
        let Some(port) = port else { continue };
        if let Some((_, _, other)) = ports.iter().find(|(_, taken, _)| *taken == port && port != 0) {
            let words = format!("{other} and {option} are both {port}; name different ports, or 0 for a free one");
            return Err(StartError::Settings(words));
        }
        ports.push((speaks, port, option));
    }
    if ports.is_empty() && config.unix.is_none() && config.grpc_unix.is_none() && !config.inherited {
        let words = "there is neither a port nor a socket to listen on: give --port, --grpc-port or --unix";
        return Err(StartError::Settings(words.to_owned()));
    }
    Ok(ports)
}

fn tcp(speaks: Protocol, host: &str, port: u16) -> io::Result<Bound> {
    let listener = std::net::TcpListener::bind((host, port))?;
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    let place = ListenAddr::Tcp(listener.local_addr()?);
    Ok(Bound { speaks, place, socket: Socket::Tcp(listener), file: None, inherited: false })
}

fn unix(speaks: Protocol, path: &Path) -> io::Result<Bound> {
    let is_socket = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    if path.symlink_metadata().is_ok() && !is_socket(path) {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "it is no socket; name another path"));
    }
    // A server that was killed leaves its socket file.
    if is_socket(path)
        && std::os::unix::net::UnixStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    socket2::SockRef::from(&listener).listen(BACKLOG)?;
    let file = Some(SocketFile { path: path.to_owned(), process: std::process::id() });
    Ok(Bound {
        speaks,
        place: ListenAddr::Unix(path.to_owned()),
        socket: Socket::Unix(listener),
        file,
        inherited: false,
    })
}

impl Bound {
    /// Registers the socket with the runtime that is entered now.
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
                // Otherwise responses would wait for acknowledgements. A stream without the option
                // still works.
                let _ = stream.set_nodelay(true);
                Box::new(Connected::new(stream))
            }
            Listening::Unix(listener) => Box::new(Connected::new(listener.accept().await?.0)),
        })
    }
}
