//! Table of the settings of a server.

use super::value::{Given, Value, shown_bytes, shown_count, shown_seconds};
use super::{Scope, Setting};
use crate::config::{Config, Control, GrpcPort, SageMaker};
use crate::log::LogForm;
use std::path::Path;

fn shown_port(port: Option<u16>) -> Given {
    port.map_or(Given::Text("off".to_owned()), |port| Given::Integer(i64::from(port)))
}

fn shown_path(path: Option<&Path>) -> Option<Given> {
    path.map(|path| Given::Text(path.display().to_string()))
}

fn port(value: Value<'_>) -> Result<Option<u16>, String> {
    if value.is_none() {
        return Ok(None);
    }
    let number = value.whole(0, u64::from(u16::MAX)).map_err(|expected| format!("{expected}, or off"))?;
    Ok(u16::try_from(number).ok())
}

/// Most threads that read and write.
const MOST_THREADS: u64 = 4096;
const CONTROLS: &[(&str, Control)] = &[("off", Control::Off), ("explicit", Control::Explicit), ("poll", Control::Poll)];
const LOGS: &[(&str, LogForm)] = &[("text", LogForm::Text), ("json", LogForm::Json)];
const ROLES: &[(&str, SageMaker)] =
    &[("off", SageMaker::Off), ("model", SageMaker::Model), ("models", SageMaker::Models)];
const EVICTIONS: &[(&str, bool)] = &[("off", false), ("lru", true)];

/// Every setting of a server.
pub static SERVER: &[Setting<Config>] = &[
    Setting {
        key: "host",
        metavar: "HOST",
        text: "name or address to listen on",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.text().map(|read| to.host = read),
        show: |of| Some(Given::Text(of.host.clone())),
    },
    Setting {
        key: "port",
        metavar: "PORT",
        text: "port of HTTP; 0: a free one; off: none",
        scope: Scope::Server,
        rare: false,
        read: |to, value| port(value).map(|read| to.port = read),
        show: |of| Some(shown_port(of.port)),
    },
    Setting {
        key: "grpc_port",
        metavar: "PORT",
        text: "port of gRPC; next: the one after that of HTTP; 0: a free one; off: none",
        scope: Scope::Server,
        rare: false,
        read: |to, value| {
            to.grpc_port = match value.given {
                Given::Text(text) if text == "next" => GrpcPort::Next,
                _ => port(value).map_err(|expected| format!("next, {expected}"))?.map_or(GrpcPort::Off, GrpcPort::At),
            };
            Ok(())
        },
        show: |of| {
            Some(match of.grpc_port {
                GrpcPort::Next => Given::Text("next".to_owned()),
                GrpcPort::Off => shown_port(None),
                GrpcPort::At(port) => shown_port(Some(port)),
            })
        },
    },
    Setting {
        key: "admin_port",
        metavar: "PORT",
        text: "port of HTTP that has the paths of those who run the server, too: plans of models, profiles; 0: a \
               free one; off: none",
        scope: Scope::Server,
        rare: false,
        read: |to, value| port(value).map(|read| to.admin_port = read),
        show: |of| Some(shown_port(of.admin_port)),
    },
    Setting {
        key: "unix",
        metavar: "PATH",
        text: "Unix socket of HTTP",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.unix = read),
        show: |of| shown_path(of.unix.as_deref()),
    },
    Setting {
        key: "grpc_unix",
        metavar: "PATH",
        text: "Unix socket of gRPC",
        scope: Scope::Server,
        rare: true,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.grpc_unix = read),
        show: |of| shown_path(of.grpc_unix.as_deref()),
    },
    Setting {
        key: "inherited",
        metavar: "on|off",
        text: "listen on the sockets that systemd handed to the process, and on no others; those \
               named grpc speak gRPC. The command switches it on where there are such",
        scope: Scope::Server,
        rare: true,
        read: |to, value| value.switch().map(|read| to.inherited = read),
        show: |of| Some(Given::Bool(of.inherited)),
    },
    Setting {
        key: "tls_certificate",
        metavar: "FILE",
        text: "certificates in PEM, which switch TLS on; read again when they change",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.tls_certificate = read),
        show: |of| shown_path(of.tls_certificate.as_deref()),
    },
    Setting {
        key: "tls_key",
        metavar: "FILE",
        text: "private key of the certificate, in PEM",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.tls_key = read),
        show: |of| shown_path(of.tls_key.as_deref()),
    },
    Setting {
        key: "tokens",
        metavar: "FILE",
        text: "bearer tokens, one a line, of which a request must have one; not set: nobody is asked for one",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.tokens = read),
        show: |of| shown_path(of.tokens.as_deref()),
    },
    Setting {
        key: "max_body",
        metavar: "BYTES",
        text: "largest request body, such as 64 MiB",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.bytes().map(|read| to.max_body = read),
        show: |of| Some(shown_bytes(of.max_body)),
    },
    Setting {
        key: "queue_requests",
        metavar: "N",
        text: "requests that may wait or compute, over all models; more are refused",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.count(1).map(|read| to.queue_requests = read),
        show: |of| Some(shown_count(of.queue_requests)),
    },
    Setting {
        key: "queue_bytes",
        metavar: "BYTES",
        text: "bytes that requests may hold, over all models: their bodies, and what is made of them",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.bytes().map(|read| to.queue_bytes = read),
        show: |of| Some(shown_bytes(of.queue_bytes)),
    },
    Setting {
        key: "answer_bytes",
        metavar: "BYTES",
        text: "bytes of answers that clients have not taken; more are refused",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.bytes().map(|read| to.answer_bytes = read),
        show: |of| Some(shown_bytes(of.answer_bytes)),
    },
    Setting {
        key: "compress",
        metavar: "on|off",
        text: "compress answers of 1 KiB and more for clients that accept gzip or deflate",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.switch().map(|read| to.compress = read),
        show: |of| Some(Given::Bool(of.compress)),
    },
    Setting {
        key: "max_pixels",
        metavar: "N",
        text: "pixels of an image, in its file and when it has been resized",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.count(1).map(|read| to.max_pixels = read),
        show: |of| Some(shown_count(of.max_pixels)),
    },
    Setting {
        key: "admission",
        metavar: "on|off",
        text: "refuse a request at once that would be late, by recent times of calls and what waits",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.switch().map(|read| to.admission = read),
        show: |of| Some(Given::Bool(of.admission)),
    },
    Setting {
        key: "ageing",
        metavar: "SECONDS",
        text: "time of waiting that a level of priority is worth",
        scope: Scope::Server,
        rare: true,
        read: |to, value| value.seconds().map(|read| to.ageing = read),
        show: |of| Some(shown_seconds(of.ageing)),
    },
    Setting {
        key: "header_timeout",
        metavar: "SECONDS",
        text: "time for the head of a request",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.some_seconds().map(|read| to.header_timeout = read),
        show: |of| Some(shown_seconds(of.header_timeout)),
    },
    Setting {
        key: "body_timeout",
        metavar: "SECONDS",
        text: "time for the body of a request, plus a second for each 256 KiB of it, and for a \
               client to take some of an answer",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.some_seconds().map(|read| to.body_timeout = read),
        show: |of| Some(shown_seconds(of.body_timeout)),
    },
    Setting {
        key: "idle_timeout",
        metavar: "SECONDS",
        text: "time that a connection may stay without a request",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.seconds().map(|read| to.idle_timeout = read),
        show: |of| Some(shown_seconds(of.idle_timeout)),
    },
    Setting {
        key: "connections",
        metavar: "N",
        text: "connections that may be open; others wait to be accepted",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.count(1).map(|read| to.connections = read),
        show: |of| Some(shown_count(of.connections)),
    },
    Setting {
        key: "io_threads",
        metavar: "N",
        text: "threads that read and write",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.whole(1, MOST_THREADS).map(|read| to.io_threads = read as usize),
        show: |of| Some(shown_count(of.io_threads)),
    },
    Setting {
        key: "repository",
        metavar: "DIR",
        text: "folder of models, NAME/VERSION/{files, mxrt.toml}, which come and go while the server runs",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.optional(|value| value.path()).map(|read| to.repository = read),
        show: |of| shown_path(of.repository.as_deref()),
    },
    Setting {
        key: "control",
        metavar: "off|explicit|poll",
        text: "when models are loaded after the start: at SIGHUP alone; by calls of clients too; or when \
               the repository's folder changes",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.word(CONTROLS).map(|read| to.control = read),
        show: |of| CONTROLS.iter().find(|row| row.1 == of.control).map(|row| Given::Text(row.0.to_owned())),
    },
    Setting {
        key: "sagemaker",
        metavar: "off|model|models",
        text: "paths of Amazon SageMaker: /ping and /invocations for one model; or /ping and /models, by which \
               the platform loads and unloads models. They are for the platform alone: it may name any file",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.word(ROLES).map(|read| to.sagemaker = read),
        show: |of| ROLES.iter().find(|row| row.1 == of.sagemaker).map(|row| Given::Text(row.0.to_owned())),
    },
    Setting {
        key: "poll",
        metavar: "SECONDS",
        text: "how often the repository's folder is looked at (control = \"poll\")",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.seconds().map(|read| to.poll = read),
        show: |of| Some(shown_seconds(of.poll)),
    },
    Setting {
        key: "evict",
        metavar: "off|lru",
        text: "whether the model of the repository that was unused for longest goes where a new one does \
               not fit into MXRT_MEMORY_LIMIT_MB",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.word(EVICTIONS).map(|read| to.evict = read),
        show: |of| EVICTIONS.iter().find(|row| row.1 == of.evict).map(|row| Given::Text(row.0.to_owned())),
    },
    Setting {
        key: "max_unpacked",
        metavar: "BYTES",
        text: "bytes that an archive may unpack to",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.bytes().map(|read| to.max_unpacked = read),
        show: |of| Some(shown_bytes(of.max_unpacked)),
    },
    Setting {
        key: "logs",
        metavar: "text|json",
        text: "form of the lines on the standard error",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.word(LOGS).map(|read| to.logs = read),
        show: |of| LOGS.iter().find(|row| row.1 == of.logs).map(|row| Given::Text(row.0.to_owned())),
    },
    Setting {
        key: "log_requests",
        metavar: "on|off",
        text: "a line for each request, with its id, traceparent, outcome and time",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.switch().map(|read| to.log_requests = read),
        show: |of| Some(Given::Bool(of.log_requests)),
    },
    Setting {
        key: "traces",
        metavar: "URL",
        text: "collector of OpenTelemetry that gets a span for each request, by OTLP over HTTP, such as \
               http://127.0.0.1:4318/v1/traces (needs mxrt[otlp]); off: none",
        scope: Scope::Server,
        rare: false,
        read: |to, value| {
            let url = value.optional(|value| value.text())?;
            let http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
            if !url.as_ref().is_none_or(http) {
                return Err("an address of HTTP, such as http://127.0.0.1:4318/v1/traces, or off".to_owned());
            }
            to.traces = url;
            Ok(())
        },
        show: |of| Some(Given::Text(of.traces.clone().unwrap_or_else(|| "off".to_owned()))),
    },
    Setting {
        key: "grace",
        metavar: "SECONDS",
        text: "time for requests that have begun when the server is told to end",
        scope: Scope::Server,
        rare: false,
        read: |to, value| value.seconds().map(|read| to.grace = read),
        show: |of| Some(shown_seconds(of.grace)),
    },
];
