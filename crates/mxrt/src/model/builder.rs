//! Choices of how a model runs.

use super::Model;
use super::engines::EngineChoice;
use crate::engine::EngineKind;
use crate::network::{Network, Site};
use crate::params::{self, NpShape, Params};
use crate::plan::CacheLimit;
use crate::{Context, Error, Precision, Symbol};
use mxrt_engine::{Engine, FailureKind};
use mxrt_graph::{BuildOptions, LoadOptions};
use mxrt_ops::RandomState;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a model runs: threads, memory, precision, device. Ends with one of the functions that load.
///
/// Models with equal choices of threads, kind of engine and memory limit share an engine. An engine
/// lasts as long as the process.
///
/// ```no_run
/// # fn main() -> Result<(), mxrt::Error> {
/// let model = mxrt::Model::builder().threads(4).memory_limit(2 << 30).load("resnet18", 0)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it loads"]
pub struct ModelBuilder {
    choice: EngineChoice,
    engine: Option<&'static Engine>,
    plans: BuildOptions,
    tuned: Option<PathBuf>,
    max_nodes: Option<usize>,
    device: Context,
    inputs: Option<Vec<String>>,
    flags: Vec<(String, String)>,
    random: Option<Arc<RandomState>>,
}

impl ModelBuilder {
    /// Takes over what environment variables say, those of MXNet and those that begin with `MXRT_`,
    /// as the Python package does. Choices that are made later go before.
    pub fn from_environment(mut self) -> Result<ModelBuilder, Error> {
        let settings = crate::settings::Settings::from_environment(&|name| std::env::var(name).ok())
            .map_err(|message| Error::new(FailureKind::Value, message))?;
        self.choice = EngineChoice::of(&settings.engine, settings.devices);
        self.plans = settings.plans;
        self.max_nodes = settings.max_nodes;
        Ok(self)
    }

    /// Sets how many threads may compute concurrently, from 1 to [`MAX_CORES`](mxrt_engine::MAX_CORES).
    /// The default is the number of cores that the process may use.
    pub fn threads(mut self, threads: usize) -> ModelBuilder {
        self.choice.cores = Some(threads);
        self
    }

    /// The kind of engine.
    pub fn engine_kind(mut self, kind: EngineKind) -> ModelBuilder {
        self.choice.kind = kind;
        self
    }

    /// How many bytes of the host's memory arrays, weights and intermediate results may take. What
    /// does not fit is an error of kind `Memory`.
    pub fn memory_limit(mut self, bytes: usize) -> ModelBuilder {
        self.choice.memory_limit = Some(bytes);
        self
    }

    /// An engine that there is already, as that of another model. Threads, kind and memory limit
    /// are then those of this engine.
    #[doc(hidden)]
    pub fn engine(mut self, engine: &'static Engine) -> ModelBuilder {
        self.engine = Some(engine);
        self
    }

    /// The numbers that convolutions and dense layers multiply, and those that weights are stored in.
    pub fn precision(mut self, precision: Precision) -> ModelBuilder {
        self.plans.kernel.precision = precision;
        self
    }

    /// Sets the device on which the model runs.
    pub fn device(mut self, device: Context) -> ModelBuilder {
        self.device = device;
        self
    }

    /// A file with a table of measured convolutions, as `mxrt tune` writes it.
    pub fn tuned(mut self, path: impl Into<PathBuf>) -> ModelBuilder {
        self.tuned = Some(path.into());
        self
    }

    /// Sets the number of plans, each for one signature of inputs, and the number of their bytes
    /// that are kept.
    pub fn plan_cache(mut self, limit: CacheLimit) -> ModelBuilder {
        self.plans.cache = limit;
        self
    }

    /// All choices of plans at once: kernels, passes, cache.
    #[doc(hidden)]
    pub fn build_options(mut self, options: BuildOptions) -> ModelBuilder {
        self.plans = options;
        self
    }

    /// How many nodes a graph may have, for programs that load files of others.
    pub fn max_nodes(mut self, nodes: usize) -> ModelBuilder {
        self.max_nodes = Some(nodes);
        self
    }

    /// A flag of MXNet's `CachedOp`, such as `precision` or `static_alloc`, by name. One that does
    /// not exist is an error while loading.
    pub fn flag(mut self, name: impl Into<String>, value: impl Into<String>) -> ModelBuilder {
        self.flags.push((name.into(), value.into()));
        self
    }

    /// The stream of random numbers for operators that draw some. Without it the model has one of
    /// its own.
    #[doc(hidden)]
    pub fn random(mut self, random: Arc<RandomState>) -> ModelBuilder {
        self.random = Some(random);
        self
    }

    /// Names of the inputs that calls pass, which become [`Model::inputs`] in this order. Any other
    /// variable of the graph without a parameter is then an error while loading. Without it every
    /// such variable is an input.
    pub fn inputs<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> ModelBuilder {
        self.inputs = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Loads `PREFIX-symbol.json` and `PREFIX-EPOCH.params`. See [`Model::load`].
    pub fn load(self, prefix: impl AsRef<str>, epoch: u32) -> Result<Model, Error> {
        let prefix = prefix.as_ref();
        self.load_files(format!("{prefix}-symbol.json"), format!("{prefix}-{epoch:04}.params"))
    }

    /// Loads a model from its two files.
    pub fn load_files(self, symbol: impl AsRef<Path>, params: impl AsRef<Path>) -> Result<Model, Error> {
        let engine = self.start_engine()?;
        let symbol = self.read_symbol(engine, &mxrt_io::read_text_within(symbol, engine.memory())?)?;
        let params = params::load(engine, params, NpShape::Off)?;
        self.build(engine, symbol, params)
    }

    /// Loads a model from the contents of its two files.
    pub fn load_bytes(self, symbol: impl AsRef<[u8]>, params: impl AsRef<[u8]>) -> Result<Model, Error> {
        let text = std::str::from_utf8(symbol.as_ref()).map_err(|error| {
            Error::new(FailureKind::Data, format!("cannot load the symbol: it is not a text: {error}"))
        })?;
        let engine = self.start_engine()?;
        let symbol = self.read_symbol(engine, text)?;
        let params = params::load_from_bytes(engine, params.as_ref(), NpShape::Off)?;
        self.build(engine, symbol, params)
    }

    /// A model of a symbol and its parameters. They belong to the engine of
    /// [`ModelBuilder::engine`], which is needed here unless there are none.
    pub fn from_symbol(self, symbol: Symbol, params: Params) -> Result<Model, Error> {
        let engine = self.start_engine()?;
        let arrays = match &params {
            Params::Named(named) => &named[..],
            Params::List(_) => &[],
        };
        if let Some((name, _)) = arrays.iter().find(|(_, array)| !std::ptr::eq(array.engine(), engine)) {
            let message = format!("the parameter '{name}' belongs to another engine: name it by ModelBuilder::engine");
            return Err(Error::new(FailureKind::Value, message));
        }
        self.build(engine, symbol, params)
    }

    fn read_symbol(&self, engine: &'static Engine, json: &str) -> Result<Symbol, Error> {
        let memory = Some(engine.memory());
        let options = LoadOptions { max_nodes: self.max_nodes, memory, ..LoadOptions::default() };
        Ok(Symbol::load_json_with(json, options)?.symbol)
    }

    fn start_engine(&self) -> Result<&'static Engine, Error> {
        self.engine.map_or_else(|| self.choice.engine(), Ok)
    }

    fn build(self, engine: &'static Engine, symbol: Symbol, params: Params) -> Result<Model, Error> {
        let mut options = self.plans;
        if let Some(path) = &self.tuned {
            let table = crate::settings::tuned(path).map_err(|message| Error::new(FailureKind::Data, message))?;
            options.kernel.tuned = Some(table);
        }
        let site = Site { engine, context: self.device, options, flags: self.flags, random: self.random };
        let given: HashSet<&str> = self.inputs.iter().flatten().map(String::as_str).collect();
        let network = Network::bind(site, symbol, params, &given)?;
        if let Some(names) = &self.inputs {
            check_inputs(&network, names, &given)?;
        }
        Model::of(network, self.inputs.as_deref())
    }
}

/// All named inputs exist, each is named once, and nothing else is without a parameter.
fn check_inputs(network: &Network, names: &[String], given: &HashSet<&str>) -> Result<(), Error> {
    let refuse = |message: String| Err(Error::new(FailureKind::Value, message));
    if let Some(twice) = (1..names.len()).find(|i| names[..*i].contains(&names[*i])) {
        return refuse(format!("the input '{}' is named twice", names[twice]));
    }
    if let Some(name) = given.iter().find(|name| !network.names.iter().any(|known| known == *name)) {
        let free: Vec<&str> = network.free().map(String::as_str).collect();
        return refuse(format!("the model has no input '{name}'; without a parameter are {}", listed(&free)));
    }
    let lost = network.free().filter(|name| !given.contains(name.as_str()) && !network.labels.contains(*name));
    let lost: Vec<&str> = lost.map(String::as_str).collect();
    let advice = "name what calls pass as inputs, or give the file that belongs to the symbol";
    match lost[..] {
        [] => Ok(()),
        [name] => refuse(format!("there is no parameter for the input '{name}': {advice}")),
        _ => refuse(format!("there is no parameter for the inputs {}: {advice}", listed(&lost))),
    }
}

/// Names that a message lists at most.
const MAX_LISTED: usize = 10;

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}
