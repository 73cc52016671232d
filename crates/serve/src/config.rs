//! What a server may be told.

use std::path::PathBuf;
use std::time::Duration;

/// Certificate and key of the server.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// certificates in PEM, that of the server first
    pub certificate: PathBuf,
    /// its private key in PEM
    pub key: PathBuf,
}

/// Where a server listens, and its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// name or address to listen at
    pub host: String,
    /// port of HTTP, 0 takes a free one; none: HTTP is not spoken over TCP
    pub port: Option<u16>,
    /// port of gRPC, 0 takes a free one; none: gRPC is not spoken over TCP
    pub grpc_port: Option<u16>,
    /// Unix socket of HTTP
    pub unix: Option<PathBuf>,
    /// Unix socket of gRPC
    pub grpc_unix: Option<PathBuf>,
    /// listen at the sockets that the process was started with, by `LISTEN_FDS` of systemd, and at no
    /// others
    pub inherited: bool,
    /// TLS on all ports and sockets; none: without
    pub tls: Option<TlsFiles>,
    /// file of bearer tokens, one a line, of which a request must have one; none: no check
    pub tokens: Option<PathBuf>,
    /// bytes of the largest request body
    pub max_body: usize,
    /// time for the head of a request
    pub header_timeout: Duration,
    /// time for the body of a request, beside one second for each 256 KiB of it, and the time in
    /// which a client must take some of an answer
    pub body_timeout: Duration,
    /// time that a connection may stay without a request
    pub idle_timeout: Duration,
    /// requests that may wait or compute at a time
    pub queue_requests: usize,
    /// bytes of request bodies that may be held at a time
    pub queue_bytes: usize,
    /// time for a request that says none; none: no bound
    pub deadline: Option<Duration>,
    /// connections that may be open at a time; others wait to be accepted
    pub connections: usize,
    /// threads that read and write
    pub io_threads: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            host: "127.0.0.1".to_owned(),
            port: Some(8000),
            grpc_port: Some(8001),
            unix: None,
            grpc_unix: None,
            inherited: false,
            tls: None,
            tokens: None,
            max_body: 64 << 20,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            queue_requests: 1024,
            queue_bytes: 512 << 20,
            deadline: None,
            connections: 16_384,
            io_threads: 2,
        }
    }
}
