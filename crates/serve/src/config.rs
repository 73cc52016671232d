//! What a server may be told.

use crate::log::LogForm;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where gRPC is spoken over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcPort {
    /// nowhere
    Off,
    /// at the port after that of HTTP; where that is a free one, at another free one
    Next,
    /// here; 0 takes a free one
    At(u16),
}

/// When models are loaded after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// when the server is told to reload
    Off,
    /// by calls of clients too
    Explicit,
    /// when the repository's folder changes
    Poll,
}

/// Where a server listens, and its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// name or address to listen at
    pub host: String,
    /// port of HTTP, 0 takes a free one; none: HTTP is not spoken over TCP
    pub port: Option<u16>,
    /// port of gRPC
    pub grpc_port: GrpcPort,
    /// port of HTTP with the paths of those who run the server, 0 takes a free one; none: they are
    /// nowhere
    pub admin_port: Option<u16>,
    /// Unix socket of HTTP
    pub unix: Option<PathBuf>,
    /// Unix socket of gRPC
    pub grpc_unix: Option<PathBuf>,
    /// listen at the sockets that the process was started with, by `LISTEN_FDS` of systemd, and at no
    /// others
    pub inherited: bool,
    /// certificates in PEM, that of the server first, for TLS on all ports and sockets; none: without
    pub tls_certificate: Option<PathBuf>,
    /// private key of the certificate, in PEM
    pub tls_key: Option<PathBuf>,
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
    /// bytes that requests may hold at a time: their bodies, and what is made of them
    pub queue_bytes: usize,
    /// bytes of answers that clients have not taken
    pub answer_bytes: usize,
    /// pixels of an image, in its file and when it has been resized
    pub max_pixels: usize,
    /// whether requests are refused at once that would be late by the estimates
    pub admission: bool,
    /// time of waiting that a level of priority is worth
    pub ageing: Duration,
    /// connections that may be open at a time; others wait to be accepted
    pub connections: usize,
    /// threads that read and write
    pub io_threads: usize,
    /// folder of models that come and go
    pub repository: Option<PathBuf>,
    /// when models are loaded after the start
    pub control: Control,
    /// how often the folder is looked at
    pub poll: Duration,
    /// whether the model that was unused for longest goes where memory is wanted
    pub evict: bool,
    /// bytes that an archive may unpack to
    pub max_unpacked: usize,
    /// form of the lines on the standard error
    pub logs: LogForm,
    /// a line for each request
    pub log_requests: bool,
    /// where spans of requests go; none: nowhere
    pub traces: Option<String>,
    /// time for requests that have begun when the server is told to end
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            host: "127.0.0.1".to_owned(),
            port: Some(8000),
            grpc_port: GrpcPort::Next,
            admin_port: None,
            unix: None,
            grpc_unix: None,
            inherited: false,
            tls_certificate: None,
            tls_key: None,
            tokens: None,
            max_body: 64 << 20,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            queue_requests: 1024,
            queue_bytes: 512 << 20,
            answer_bytes: 256 << 20,
            max_pixels: 64 << 20,
            admission: true,
            ageing: Duration::from_secs(1),
            connections: 16_384,
            io_threads: 2,
            repository: None,
            control: Control::Off,
            poll: Duration::from_secs(2),
            evict: false,
            max_unpacked: 4 << 30,
            logs: LogForm::Text,
            log_requests: false,
            traces: None,
            grace: Duration::from_secs(25),
        }
    }
}

impl Config {
    /// The port of gRPC; 0 stands for a free one.
    pub(crate) fn grpc_port(&self) -> Result<Option<u16>, String> {
        match (self.grpc_port, self.port) {
            (GrpcPort::Off, _) | (GrpcPort::Next, None) => Ok(None),
            (GrpcPort::At(port), _) => Ok(Some(port)),
            (GrpcPort::Next, Some(0)) => Ok(Some(0)),
            (GrpcPort::Next, Some(port)) => port.checked_add(1).map(Some).ok_or_else(|| {
                format!("there is no port after {port} for gRPC: give one by grpc_port (--grpc-port), or off")
            }),
        }
    }

    /// Certificate and key, where TLS is spoken.
    pub(crate) fn tls(&self) -> Result<Option<(&Path, &Path)>, String> {
        match (&self.tls_certificate, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            _ => Err("TLS needs both tls_certificate (--tls-certificate) and tls_key (--tls-key)".to_owned()),
        }
    }

    /// What is to be said where others can ask and nothing checks them.
    pub fn warning(&self) -> Option<String> {
        let host = self.host.as_str();
        let tcp = self.port.is_some() || self.grpc_port != GrpcPort::Off;
        let loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
        if loopback || !tcp || self.tls_certificate.is_some() || self.tokens.is_some() || self.inherited {
            return None;
        }
        Some(format!(
            "{host} can be reached by other machines, and nothing checks who asks: \
             use --tokens and --tls-certificate, or a proxy"
        ))
    }
}
