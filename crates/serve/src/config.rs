//! Settings of a server, after they were read.

use crate::log::LogForm;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Port of gRPC over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcPort {
    /// no port
    Off,
    /// the port after that of HTTP; if HTTP takes a free port, another free one
    Next,
    /// this port; 0 takes a free one
    At(u16),
}

/// Events that load models after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// reloads of the server, and nothing else
    Off,
    /// calls of clients too
    Explicit,
    /// changes of the repository's folder
    Poll,
}

/// Role of a server as a container of Amazon SageMaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SageMaker {
    /// none
    Off,
    /// `/ping` and `/invocations`, for one model
    Model,
    /// `/ping` and `/models`, by which the platform loads and unloads models
    Models,
}

/// Addresses on which a server listens, and its limits.
#[derive(Clone, Debug)]
pub struct Config {
    /// name or address to listen on
    pub host: String,
    /// port of HTTP, 0 takes a free one; none: no HTTP over TCP
    pub port: Option<u16>,
    /// port of gRPC
    pub grpc_port: GrpcPort,
    /// port of HTTP with the additional endpoints for operators, 0 takes a free one; none: these
    /// endpoints are not served
    pub admin_port: Option<u16>,
    /// Unix socket of HTTP
    pub unix: Option<PathBuf>,
    /// Unix socket of gRPC
    pub grpc_unix: Option<PathBuf>,
    /// whether the server listens on the sockets that systemd passed to the process by
    /// `LISTEN_FDS`, and on no others
    pub inherited: bool,
    /// certificates in PEM, that of the server first, for TLS on all ports and sockets; none: no
    /// TLS
    pub tls_certificate: Option<PathBuf>,
    /// private key of the certificate, in PEM
    pub tls_key: Option<PathBuf>,
    /// file of bearer tokens, one a line, of which a request must have one; none: no check
    pub tokens: Option<PathBuf>,
    /// largest request body, in bytes
    pub max_body: usize,
    /// time for the head of a request
    pub header_timeout: Duration,
    /// time for the body of a request, plus one second for each 256 KiB of it; also the time in
    /// which a client must take some of a response
    pub body_timeout: Duration,
    /// time that a connection may stay without a request
    pub idle_timeout: Duration,
    /// number of requests that may wait or compute concurrently
    pub queue_requests: usize,
    /// bytes that all requests may hold concurrently: their bodies, and the arrays made of them
    pub queue_bytes: usize,
    /// bytes of responses that clients have not taken
    pub answer_bytes: usize,
    /// whether responses are compressed for clients that accept that
    pub compress: bool,
    /// largest number of pixels of an image, both in its file and after resizing
    pub max_pixels: usize,
    /// whether requests that would miss their deadlines, by the estimates, are refused at once
    pub admission: bool,
    /// waiting time that one level of priority is worth
    pub ageing: Duration,
    /// number of connections that may be open concurrently; others wait to be accepted
    pub connections: usize,
    /// number of threads that read and write
    pub io_threads: usize,
    /// folder of models, which may change while the server runs
    pub repository: Option<PathBuf>,
    /// events that load models after the start
    pub control: Control,
    /// role as a container of SageMaker
    pub sagemaker: SageMaker,
    /// interval at which the folder is checked
    pub poll: Duration,
    /// whether the model that was unused for longest is unloaded when memory is needed
    pub evict: bool,
    /// bytes that an archive may unpack to
    pub max_unpacked: usize,
    /// format of the lines on the standard error
    pub logs: LogForm,
    /// whether a line is logged for each request
    pub log_requests: bool,
    /// URL of the collector that gets the spans of requests; none: no spans
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
            compress: true,
            max_pixels: 64 << 20,
            admission: true,
            ageing: Duration::from_secs(1),
            connections: 16_384,
            io_threads: 2,
            repository: None,
            control: Control::Off,
            sagemaker: SageMaker::Off,
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
    /// Returns the port of gRPC; 0 stands for a free one, `None` for no port.
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

    /// Returns the files of the certificate and key; `None` without TLS.
    pub(crate) fn tls(&self) -> Result<Option<(&Path, &Path)>, String> {
        match (&self.tls_certificate, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            _ => Err("TLS needs both tls_certificate (--tls-certificate) and tls_key (--tls-key)".to_owned()),
        }
    }

    /// Returns a warning if other machines can reach the server and nothing authenticates them.
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
