//! Settings of a server.

use super::kinds::{BYTES, COUNT, Kind, OPTIONAL_PATH, SECONDS, SOME_SECONDS, SWITCH, TEXT, kind, off, words};
use super::row::settings;
use super::value::{Given, Value, shown_count};
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

/// Most threads that read and write.
const MOST_THREADS: u64 = 4096;

fn port(value: Value<'_>) -> Result<Option<u16>, String> {
    if value.is_none() {
        return Ok(None);
    }
    let number = value.whole(0, u64::from(u16::MAX)).map_err(|expected| format!("{expected}, or off"))?;
    Ok(u16::try_from(number).ok())
}

fn grpc_port(value: Value<'_>) -> Result<GrpcPort, String> {
    match value.given {
        Given::Text(text) if text == "next" => Ok(GrpcPort::Next),
        _ => port(value)
            .map(|port| port.map_or(GrpcPort::Off, GrpcPort::At))
            .map_err(|expected| format!("next, {expected}")),
    }
}

fn shown_port(port: Option<u16>) -> Given {
    port.map_or_else(off, |port| Given::Integer(i64::from(port)))
}

/// Reads the URL of a collector of spans.
fn collector(value: Value<'_>) -> Result<Option<String>, String> {
    let url = value.optional(|value| value.text())?;
    let http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    match url.as_ref().is_none_or(http) {
        true => Ok(url),
        false => Err("an address of HTTP, such as http://127.0.0.1:4318/v1/traces, or off".to_owned()),
    }
}

const PORT: Kind<Option<u16>> = kind!(|value| port(value), |of| Some(shown_port(*of)));
const GRPC_PORT: Kind<GrpcPort> = kind!(|value| grpc_port(value), |of| {
    Some(match *of {
        GrpcPort::Next => Given::Text("next".to_owned()),
        GrpcPort::Off => shown_port(None),
        GrpcPort::At(port) => shown_port(Some(port)),
    })
});
const THREADS: Kind<usize> =
    kind!(|value| value.whole(1, MOST_THREADS).map(|threads| threads as usize), |of| Some(shown_count(*of)));
const CONTROL: Kind<Control> =
    words!(&[("off", Control::Off), ("explicit", Control::Explicit), ("poll", Control::Poll)]);
const SAGEMAKER: Kind<SageMaker> =
    words!(&[("off", SageMaker::Off), ("model", SageMaker::Model), ("models", SageMaker::Models)]);
const EVICTION: Kind<bool> = words!(&[("off", false), ("lru", true)]);
const LOGS: Kind<LogForm> = words!(&[("text", LogForm::Text), ("json", LogForm::Json)]);
const COLLECTOR: Kind<Option<String>> =
    kind!(|value| collector(value), |of| Some(of.clone().map_or_else(off, Given::Text)));

settings! {
    /// Addresses on which a server listens, and its limits.
    pub struct Config, table SERVER of Server {
        /// name or address to listen on
        host: String = "127.0.0.1".to_owned(), TEXT, "HOST";
        /// port of HTTP; 0: a free one; off: none
        port: Option<u16> = Some(8000), PORT, "PORT";
        /// port of gRPC; next: the one after that of HTTP; 0: a free one; off: none
        grpc_port: GrpcPort = GrpcPort::Next, GRPC_PORT, "PORT";
        /// port of HTTP that has the paths of those who run the server, too: plans of models,
        /// profiles; 0: a free one; off: none
        admin_port: Option<u16> = None, PORT, "PORT";
        /// Unix socket of HTTP
        unix: Option<PathBuf> = None, OPTIONAL_PATH, "PATH";
        /// Unix socket of gRPC
        grpc_unix: Option<PathBuf> = None, OPTIONAL_PATH, "PATH", rare;
        /// listen on the sockets that systemd handed to the process, and on no others; those named
        /// grpc speak gRPC. The command switches it on where there are such
        inherited: bool = false, SWITCH, "on|off", rare;
        /// certificates in PEM, which switch TLS on; read again when they change
        tls_certificate: Option<PathBuf> = None, OPTIONAL_PATH, "FILE";
        /// private key of the certificate, in PEM
        tls_key: Option<PathBuf> = None, OPTIONAL_PATH, "FILE";
        /// bearer tokens, one a line, of which a request must have one; not set: nobody is asked
        /// for one
        tokens: Option<PathBuf> = None, OPTIONAL_PATH, "FILE";
        /// largest request body, such as 64 MiB
        max_body: usize = 64 << 20, BYTES, "BYTES";
        /// requests that may wait or compute, over all models; more are refused
        queue_requests: usize = 1024, COUNT, "N";
        /// bytes that requests may hold, over all models: their bodies, and what is made of them
        queue_bytes: usize = 512 << 20, BYTES, "BYTES";
        /// bytes of answers that clients have not taken; more are refused
        answer_bytes: usize = 256 << 20, BYTES, "BYTES";
        /// compress answers of 1 KiB and more for clients that accept gzip or deflate
        compress: bool = true, SWITCH, "on|off";
        /// pixels of an image, in its file and when it has been resized
        max_pixels: usize = 64 << 20, COUNT, "N";
        /// refuse a request at once that would be late, by recent times of calls and what waits
        admission: bool = true, SWITCH, "on|off";
        /// time of waiting that a level of priority is worth
        ageing: Duration = Duration::from_secs(1), SECONDS, "SECONDS", rare;
        /// time for the head of a request
        header_timeout: Duration = Duration::from_secs(10), SOME_SECONDS, "SECONDS";
        /// time for the body of a request, plus a second for each 256 KiB of it, and for a client
        /// to take some of an answer
        body_timeout: Duration = Duration::from_secs(30), SOME_SECONDS, "SECONDS";
        /// time that a connection may stay without a request
        idle_timeout: Duration = Duration::from_secs(75), SECONDS, "SECONDS";
        /// connections that may be open; others wait to be accepted
        connections: usize = 16_384, COUNT, "N";
        /// threads that read and write
        io_threads: usize = 2, THREADS, "N";
        /// folder of models, NAME/VERSION/{files, mxrt.toml}, which come and go while the server
        /// runs
        repository: Option<PathBuf> = None, OPTIONAL_PATH, "DIR";
        /// events that load models after the start: SIGHUP alone; calls of clients too; or changes of
        /// the repository's folder
        control: Control = Control::Off, CONTROL, "off|explicit|poll";
        /// paths of Amazon SageMaker: /ping and /invocations for one model; or /ping and /models,
        /// by which the platform loads and unloads models. They are for the platform alone: it may
        /// name any file
        sagemaker: SageMaker = SageMaker::Off, SAGEMAKER, "off|model|models";
        /// how often the repository's folder is looked at (control = "poll")
        poll: Duration = Duration::from_secs(2), SECONDS, "SECONDS";
        /// whether the model of the repository that was unused for longest goes where a new one
        /// does not fit into MXRT_MEMORY_LIMIT_MB
        evict: bool = false, EVICTION, "off|lru";
        /// bytes that an archive may unpack to
        max_unpacked: usize = 4 << 30, BYTES, "BYTES";
        /// form of the lines on the standard error
        logs: LogForm = LogForm::Text, LOGS, "text|json";
        /// a line for each request, with its id, traceparent, outcome and time
        log_requests: bool = false, SWITCH, "on|off";
        /// collector of OpenTelemetry that gets a span for each request, by OTLP over HTTP, such as
        /// http://127.0.0.1:4318/v1/traces (needs mxrt[otlp]); off: none
        traces: Option<String> = None, COLLECTOR, "URL";
        /// time for requests that have begun when the server is told to end
        grace: Duration = Duration::from_secs(25), SECONDS, "SECONDS";
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
