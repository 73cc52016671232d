//! Sockets and repositories of a running server, and what its shutdown waits for.

use mxrt_engine::{Config as EngineConfig, Engine};
use mxrt_graph::BuildOptions;
use mxrt_serve::settings::{Given, Origin};
use mxrt_serve::{Configuration, GrpcPort, Protocol, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A model that repeats its input a million times.
const REPEAT: &str = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []},
    {"op": "tile", "name": "y", "attrs": {"reps": "(1000000, 1)"}, "inputs": [[0, 0, 0]]}],
    "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]]}"#;
const BODY: &str = r#"{"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [1]}],
    "parameters": {"binary_data_output": true}}"#;
/// Longest wait of a test that fails.
const LONG: Duration = Duration::from_secs(60);

/// Folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let folder = Folder(std::env::temp_dir().join(format!("mxrt-{name}-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    folder
}

/// Writes the model into a folder of the folder.
fn write_model(folder: &Folder, name: &str) {
    std::fs::create_dir_all(folder.0.join(name)).expect("a folder");
    std::fs::write(folder.0.join(name).join("repeat-symbol.json"), REPEAT).expect("a file");
}

/// Starts a server at a Unix socket, and at a port for operators.
fn start(name: &str, change: impl FnOnce(&mut Configuration)) -> (Server, Folder) {
    let folder = folder(name);
    write_model(&folder, "repeat");
    let mut configuration = Configuration::default();
    configuration.add_model("repeat").expect("a name");
    let path = Given::Text(folder.0.join("repeat").display().to_string());
    configuration.set_model(Origin::Program, "repeat", "path", path).expect("a path");
    change(&mut configuration);
    (serve(configuration, &folder), folder)
}

fn serve(mut configuration: Configuration, folder: &Folder) -> Server {
    let server = &mut configuration.server;
    (server.port, server.grpc_port, server.admin_port) = (None, GrpcPort::Off, Some(0));
    server.unix = Some(folder.0.join("socket"));
    let engine = Engine::start(EngineConfig::default()).expect("an engine");
    Server::start(engine, BuildOptions::default(), &configuration).expect("a server")
}

fn unix(folder: &Folder) -> UnixStream {
    let stream = UnixStream::connect(folder.0.join("socket")).expect("a server");
    stream.set_read_timeout(Some(LONG)).expect("a socket");
    stream
}

/// Asks without a body on a connection, and returns the answer.
fn get(stream: &mut (impl Read + Write), path: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\n\r\n").expect("a server");
    let mut answer = Vec::new();
    let mut piece = [0; 1 << 16];
    loop {
        let read = stream.read(&mut piece).expect("an answer");
        assert!(read > 0, "the server ended the connection");
        answer.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&answer);
        let length = |head: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            line.parse::<usize>().expect("a number")
        };
        if text.split_once("\r\n\r\n").is_some_and(|(head, body)| body.len() >= length(head)) {
            return text.into_owned();
        }
    }
}

#[test]
fn the_shutdown_waits_for_what_clients_still_take() {
    let (server, folder) = start("shutdown", |_| ());
    let mut slow = unix(&folder);
    let head = format!("POST /v2/models/repeat/infer HTTP/1.1\r\nhost: here\r\ncontent-length: {}\r\n", BODY.len());
    write!(slow, "{head}\r\n{BODY}").expect("a server");
    let mut other = unix(&folder);
    let answered = r#"mxrt_requests_total{model="repeat",version="1",outcome="success"} 1"#;
    while !get(&mut other, "/metrics").contains(answered) {
        std::thread::yield_now();
    }
    server.drain();
    assert!(!server.wait_drained(Duration::ZERO), "the client has not read its answer");
    let reading = std::thread::spawn(move || {
        let mut answer = Vec::new();
        let _ = slow.read_to_end(&mut answer);
        answer.len()
    });
    assert!(server.stop(LONG));
    assert!(reading.join().expect("a reader") > 4_000_000);
}

#[test]
fn each_socket_has_a_place_for_a_connection() {
    let (server, folder) = start("places", |configuration| configuration.server.connections = 1);
    let mut first = unix(&folder);
    assert!(get(&mut first, "/v2/health/live").starts_with("HTTP/1.1 200"));
    let address = server.address(Protocol::Admin).expect("an address");
    let mut second = TcpStream::connect(address).expect("a server");
    second.set_read_timeout(Some(LONG)).expect("a socket");
    assert!(get(&mut second, "/v2/health/live").starts_with("HTTP/1.1 200"));
    assert!(get(&mut first, "/v2/health/live").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_name_that_the_repository_has_twice_keeps_no_other_model_from_serving() {
    let folder = folder("twice");
    write_model(&folder, "models/faces");
    write_model(&folder, "models/scores");
    let other = folder.0.join("models/faces.zip");
    std::fs::write(&other, "").expect("a file");
    let mut configuration = Configuration::default();
    configuration.server.repository = Some(folder.0.join("models"));
    let server = serve(configuration, &folder);
    let states =
        || -> Vec<_> { server.index().into_iter().map(|entry| (entry.name, entry.state, entry.reason)).collect() };
    let entry = |name: &str, state: &'static str, reason: &str| (name.to_owned(), state, reason.to_owned());
    let words = "the repository has two models 'faces'";
    assert_eq!(states(), [entry("faces", "UNAVAILABLE", words), entry("scores", "READY", "")]);
    assert!(server.load("faces").is_err_and(|refusal| refusal.message.ends_with(words)));
    std::fs::remove_file(&other).expect("a file");
    server.reload(None).expect("a repository");
    assert_eq!(states(), [entry("faces", "READY", ""), entry("scores", "READY", "")]);
    // The one that serves stays in service when there is a second one, and forgets it.
    std::fs::write(&other, "").expect("a file");
    server.reload(None).expect("a repository");
    assert_eq!(states(), [entry("faces", "READY", words), entry("scores", "READY", "")]);
    std::fs::remove_file(&other).expect("a file");
    server.reload(None).expect("a repository");
    assert_eq!(states(), [entry("faces", "READY", ""), entry("scores", "READY", "")]);
}
