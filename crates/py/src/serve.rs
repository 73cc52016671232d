//! The server.

use crate::{errors, hooks, runtime, symbol};
use mxrt_engine::{FailureKind, ForkSafeMutex};
use mxrt_serve::settings::{Given, MODEL, Origin, SERVER, Scope, Setting};
use mxrt_serve::{Configuration, Level, ListenAddr, LogForm, Protocol, Server, Span, StartError, log_line};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt};
use std::path::PathBuf;
use std::time::Duration;

/// Reads a value of Python whose expected type is not yet known.
fn given(value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if value.is_none() {
        return Ok(Given::Nothing);
    }
    // True is an int of Python's.
    if value.is_instance_of::<PyBool>() {
        return Ok(Given::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.extract().map_or(Given::Float(f64::NAN), Given::Integer));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Given::Float(value.extract()?));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(Given::Text(path.to_string_lossy().into_owned()));
    }
    if let Ok(items) = value.cast::<PyDict>() {
        let item = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((key.extract()?, given(&value)?));
        return Ok(Given::Table(items.iter().map(item).collect::<PyResult<_>>()?));
    }
    if let Ok(items) = value.try_iter() {
        return Ok(Given::List(items.map(|item| given(&item?)).collect::<PyResult<_>>()?));
    }
    // A number of numpy's, and others that say what they are.
    match value.extract::<i64>() {
        Ok(number) => Ok(Given::Integer(number)),
        Err(_) => Ok(Given::Float(value.extract()?)),
    }
}

fn wrong(message: &str) -> PyErr {
    errors::plain(FailureKind::Value, message)
}

/// Settings of a server and its models, from all sources.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct ServeConfig(ForkSafeMutex<Configuration>);

impl ServeConfig {
    fn change<T>(&self, change: impl FnOnce(&mut Configuration) -> Result<T, String>) -> PyResult<T> {
        let changed = change(&mut self.0.lock());
        changed.map_err(|message| wrong(&message))
    }
}

fn origin(option: bool) -> Origin {
    if option { Origin::Option } else { Origin::Program }
}

#[pymethods]
impl ServeConfig {
    #[new]
    fn new() -> ServeConfig {
        ServeConfig(ForkSafeMutex::new(Configuration::default()))
    }

    /// Reads a file of TOML.
    fn file(&self, path: PathBuf) -> PyResult<()> {
        self.change(|configuration| configuration.file(&path))
    }

    /// Takes values from environment variables.
    fn environment(&self, variables: Vec<(String, String)>) -> PyResult<()> {
        self.change(|configuration| configuration.environment(variables))
    }

    /// Sets the value of a key, for the server or for all models.
    fn set(&self, key: &str, value: &Bound<'_, PyAny>, option: bool) -> PyResult<()> {
        let value = given(value)?;
        self.change(|configuration| configuration.set(origin(option), key, value))
    }

    /// Adds a model that is to be served.
    fn add_model(&self, name: &str) -> PyResult<()> {
        self.change(|configuration| configuration.add_model(name))
    }

    /// Sets the value of a key for one model.
    fn set_model(&self, model: &str, key: &str, value: &Bound<'_, PyAny>, option: bool) -> PyResult<()> {
        let value = given(value)?;
        self.change(|configuration| configuration.set_model(origin(option), model, key, value))
    }

    /// Names of the models.
    fn models(&self) -> PyResult<Vec<String>> {
        self.change(|configuration| Ok(configuration.models()))
    }

    /// Writes all settings as a file that sets the same, with the source of each.
    fn print(&self) -> PyResult<String> {
        self.change(|configuration| configuration.print())
    }

    /// Formats all settings as JSON, with the source of each.
    fn print_json(&self) -> PyResult<String> {
        self.change(|configuration| configuration.print_json())
    }

    /// Returns a warning if other machines can send requests and nothing checks them.
    fn warning(&self) -> PyResult<Option<String>> {
        self.change(|configuration| Ok(configuration.server.warning()))
    }

    /// Seconds that requests in progress get when the server is told to end.
    fn grace(&self) -> PyResult<f64> {
        self.change(|configuration| Ok(configuration.server.grace.as_secs_f64()))
    }

    /// Destination of the spans of requests, if there is one.
    fn traces(&self) -> PyResult<Option<String>> {
        self.change(|configuration| Ok(configuration.server.traces.clone()))
    }

    /// Whether the lines of the log are JSON objects.
    fn logs_json(&self) -> PyResult<bool> {
        self.change(|configuration| Ok(configuration.server.logs == LogForm::Json))
    }

    /// Leaves messages about models to the program that starts the server.
    fn quiet(&self) -> PyResult<()> {
        self.change(|configuration| {
            configuration.quiet = true;
            Ok(())
        })
    }

    /// The file of tokens, if requests need one.
    fn tokens(&self) -> PyResult<Option<PathBuf>> {
        self.change(|configuration| Ok(configuration.server.tokens.clone()))
    }

    /// The certificate that clients may trust, if the server uses TLS.
    fn certificate(&self) -> PyResult<Option<PathBuf>> {
        self.change(|configuration| Ok(configuration.server.tls_certificate.clone()))
    }
}

/// Key, placeholder, description, default and scope of a setting, and whether it is rare.
type SettingRow = (&'static str, &'static str, &'static str, Option<String>, &'static str, bool);

/// Lists every setting: its key, the placeholder for its value, its description, its default,
/// its scope (`server`, `models`: all or one of them, or `model`: one of them), and whether only
/// `--help-all` describes it.
#[pyfunction]
pub(crate) fn serve_settings() -> Vec<SettingRow> {
    fn rows<C: Default>(table: &'static [Setting<C>]) -> impl Iterator<Item = SettingRow> {
        let scope = |scope| match scope {
            Scope::Server => "server",
            Scope::Models => "models",
            Scope::OneModel => "model",
        };
        table.iter().map(move |row| (row.key, row.metavar, row.text, row.default(), scope(row.scope), row.rare))
    }
    rows(SERVER).chain(rows(MODEL)).collect()
}

/// Formats a line of the log as a server writes it, with level `info`, `warning` or `error`, and
/// with a model if one is named.
#[pyfunction]
#[pyo3(signature = (json, level, words, model=None))]
pub(crate) fn serve_line(json: bool, level: &str, words: &str, model: Option<&str>) -> String {
    let form = if json { LogForm::Json } else { LogForm::Text };
    let level = match level {
        "info" => Level::Info,
        "warning" => Level::Warning,
        _ => Level::Error,
    };
    log_line(form, level, model, words)
}

/// A server that accepts and answers requests in threads of its own, which never attach to Python.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct HttpServer(Server);

#[pymethods]
impl HttpServer {
    /// Loads the models and starts the server.
    #[new]
    fn new(py: Python<'_>, config: &ServeConfig) -> PyResult<HttpServer> {
        let mut configuration = config.change(|configuration| Ok(configuration.clone()))?;
        configuration.hooks = Some(hooks::loader());
        configuration.max_nodes = symbol::nodes_allowed()?;
        let runtime = runtime::runtime()?;
        let started = py.detach(|| Server::start(runtime.engine, runtime.plans, &configuration));
        started.map(HttpServer).map_err(|error| match error {
            StartError::Models(error) => errors::from_op(py, &error),
            StartError::Settings(words) => wrong(&words),
            StartError::Files(words) => errors::plain(FailureKind::Data, &words),
            error @ (StartError::InUse(..) | StartError::Listen(..)) => wrong(&error.to_string()),
            error @ StartError::Threads(_) => errors::plain(FailureKind::Memory, &error.to_string()),
        })
    }

    /// The metadata of all models that serve, as JSON.
    fn models(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.models())
    }

    /// Lists all versions: model, version, state, and reason.
    fn index(&self, py: Python<'_>) -> Vec<(String, String, &'static str, String)> {
        let entries = py.detach(|| self.0.index());
        entries.into_iter().map(|entry| (entry.name, entry.version, entry.state, entry.reason)).collect()
    }

    /// Loads models again if they have changed, and named models in any case. If `config` is given,
    /// its settings of models replace the old ones.
    #[pyo3(signature = (config=None))]
    fn reload(&self, py: Python<'_>, config: Option<&ServeConfig>) -> PyResult<()> {
        let configuration =
            config.map(|config| config.change(|configuration| Ok(configuration.clone()))).transpose()?;
        py.detach(|| self.0.reload(configuration.as_ref())).map_err(|message| wrong(&message))
    }

    /// Loads a model.
    fn load(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.0.load(name)).map_err(|refusal| wrong(&refusal.message))
    }

    /// Takes a model out of service.
    fn unload(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.0.unload(name)).map_err(|refusal| wrong(&refusal.message))
    }

    /// Returns the spans of requests that have ended since the last call: numbers of the trace, the
    /// span and its parent; when it began, computed from and to, and ended, in nanoseconds since
    /// 1970; model, version and outcome.
    #[allow(clippy::type_complexity)]
    fn spans(
        &self,
        py: Python<'_>,
    ) -> Vec<((u128, u64, Option<u64>), (u64, Option<(u64, u64)>, u64), (String, String, &'static str))> {
        let spans = py.detach(|| self.0.spans());
        let row = |span: Span| {
            let (model, version) = span.model;
            let numbers = (span.trace, span.number, span.parent);
            (numbers, (span.began, span.computed, span.ended), (model, version, span.outcome))
        };
        spans.into_iter().map(row).collect()
    }

    /// Lists the addresses that the server listens on: the protocol, and host and port, or a path.
    fn places(&self) -> Vec<(&'static str, String, Option<u16>)> {
        let places = self.0.places().iter().map(|(speaks, place)| {
            let speaks = match speaks {
                Protocol::Http => "http",
                Protocol::Grpc => "grpc",
                Protocol::Admin => "admin",
            };
            match place {
                ListenAddr::Tcp(address) => (speaks, address.ip().to_string(), Some(address.port())),
                ListenAddr::Unix(path) => (speaks, path.display().to_string(), None),
            }
        });
        places.collect()
    }

    /// Refuses new requests from now on.
    fn drain(&self) {
        self.0.drain();
    }

    /// Waits for at most `seconds` seconds until no request is left. Returns True if none is.
    fn wait_drained(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let patience = patience(seconds)?;
        Ok(py.detach(|| self.0.wait_drained(patience)))
    }

    /// Ends the server. Requests in progress get `seconds` seconds. Returns True if all were
    /// answered.
    fn stop(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let grace = patience(seconds)?;
        Ok(py.detach(|| self.0.stop(grace)))
    }
}

fn patience(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| wrong(&format!("{seconds} is no time to wait; expected a number of seconds, 0 or more")))
}
