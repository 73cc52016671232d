//! The server.

use crate::{errors, runtime};
use mxrt_engine::{FailureKind, OpError};
use mxrt_serve::{BatchChoice, Config, Model, ModelSpec, Place, Repository, Server, Speaks, TlsFiles};
use mxrt_tensor::DType;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::time::Duration;

/// A server that listens and answers from threads of its own, which never attach to Python.
#[pyclass(frozen, module = "mxrt._mxrt")]
pub(crate) struct HttpServer {
    server: Server,
    models: String,
}

/// A model: name, version, symbol file, parameter file, shapes and types of inputs, options, and rows
/// of a batch: 0 for none, nothing where the plan decides.
type Given = (
    String,
    String,
    PathBuf,
    Option<PathBuf>,
    Vec<(String, Vec<i64>)>,
    Vec<(String, String)>,
    Vec<(String, String)>,
    Option<usize>,
);

fn spec(given: Given) -> Result<ModelSpec, OpError> {
    let (name, version, symbol, params, shapes, dtypes, flags, rows) = given;
    let typed = |(input, dtype): (String, String)| match dtype.parse::<DType>() {
        Ok(dtype) => Ok((input, dtype)),
        Err(error) => Err(OpError::new(FailureKind::Type, error.to_string())),
    };
    let dtypes = dtypes.into_iter().map(typed).collect::<Result<_, _>>()?;
    let batch = match rows {
        None => BatchChoice::Auto,
        Some(0) => BatchChoice::Off,
        Some(rows) => BatchChoice::Rows(rows),
    };
    Ok(ModelSpec { name, version, symbol, params, shapes, dtypes, flags, batch })
}

fn time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = value.extract()?;
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("{name} is {seconds}; expected a number of seconds, 0 or more");
        errors::plain(FailureKind::Value, &message)
    })
}

fn config(settings: &Bound<'_, PyDict>) -> PyResult<Config> {
    let mut config = Config::default();
    for (name, value) in settings {
        let name: String = name.extract()?;
        match name.as_str() {
            "host" => config.host = value.extract()?,
            "port" => config.port = value.extract()?,
            "grpc_port" => config.grpc_port = value.extract()?,
            "unix" => config.unix = value.extract()?,
            "grpc_unix" => config.grpc_unix = value.extract()?,
            "inherited" => config.inherited = value.extract()?,
            "tls" => {
                let files: Option<(PathBuf, PathBuf)> = value.extract()?;
                config.tls = files.map(|(certificate, key)| TlsFiles { certificate, key });
            }
            "tokens" => config.tokens = value.extract()?,
            "max_body" => config.max_body = value.extract()?,
            "header_timeout" => config.header_timeout = time(&name, &value)?,
            "body_timeout" => config.body_timeout = time(&name, &value)?,
            "idle_timeout" => config.idle_timeout = time(&name, &value)?,
            "queue_requests" => config.queue_requests = value.extract()?,
            "queue_bytes" => config.queue_bytes = value.extract()?,
            "deadline" => config.deadline = if value.is_none() { None } else { Some(time(&name, &value)?) },
            "connections" => config.connections = value.extract()?,
            "io_threads" => config.io_threads = value.extract()?,
            _ => return Err(errors::plain(FailureKind::Type, &format!("a server has no setting '{name}'"))),
        }
    }
    Ok(config)
}

#[pymethods]
impl HttpServer {
    /// Loads the models, and listens.
    #[new]
    fn new(py: Python<'_>, models: Vec<Given>, settings: &Bound<'_, PyDict>) -> PyResult<HttpServer> {
        let config = config(settings)?;
        let runtime = runtime::runtime()?;
        let started = py.detach(|| {
            let mut repository = Repository::default();
            for given in models {
                let model = Model::load(runtime.engine, runtime.plans, &spec(given)?)?;
                repository.add(model).map_err(|message| OpError::new(FailureKind::Value, message))?;
            }
            let models = repository.describe();
            let server = Server::start(runtime.engine, repository, config);
            let server = server.map_err(|error| OpError::new(FailureKind::Operator, error.to_string()))?;
            Ok(HttpServer { server, models })
        });
        started.map_err(|error: OpError| errors::from_op(py, &error))
    }

    /// Where it listens: what is spoken, and host and port, or a path.
    fn places(&self) -> Vec<(&'static str, String, Option<u16>)> {
        let places = self.server.places().iter().map(|(speaks, place)| {
            let speaks = if *speaks == Speaks::Http { "http" } else { "grpc" };
            match place {
                Place::Tcp(address) => (speaks, address.ip().to_string(), Some(address.port())),
                Place::Unix(path) => (speaks, path.display().to_string(), None),
            }
        });
        places.collect()
    }

    /// The metadata of all models, as JSON.
    fn models(&self) -> &str {
        &self.models
    }

    /// Refuses new requests from now on.
    fn drain(&self) {
        self.server.drain();
    }

    /// Waits at most so many seconds until no request is left; True if none is.
    fn wait_drained(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let patience = patience(seconds)?;
        Ok(py.detach(|| self.server.wait_drained(patience)))
    }

    /// Ends it: requests that have begun get so many seconds. True if all of them were answered.
    fn stop(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let grace = patience(seconds)?;
        Ok(py.detach(|| self.server.stop(grace)))
    }
}

fn patience(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("{seconds} is no time to wait; expected a number of seconds, 0 or more");
        errors::plain(FailureKind::Value, &message)
    })
}
