//! Loading of models: reading their files, checking them, and making the first calls.

use super::explain;
use super::graph::{FreeArguments, ModelGraph};
use super::interface::Declared;
use super::labels::Labels;
use super::types::ModelTypes;
use super::{Feed, GraphArgument, Interface, Model, NamedTensor, TensorInfo, bad, listed, shapes};
use crate::batch::{self, Batcher, Joining, USUAL_ROWS};
use crate::hooks::{HookLoader, Hooks};
use crate::metrics::ModelMetrics;
use crate::protocol::npy;
use crate::queue::Queue;
use crate::regular;
use crate::settings::{BatchChoice, ModelSettings, ModelSpec};
use crate::turns::Turns;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BuildOptions, CallOptions, Interrupter, JoinedRows, LoadOptions, Symbol};
use mxrt_io::model_files::ModelFiles;
use mxrt_io::params::{self, NpShape, Params};
use mxrt_tensor::{Context, DType, NDArray, Shape, TensorType};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Bounds on a golden file: its number of arrays, and below it their bytes.
const MOST_GOLDEN: usize = 1000;
const LARGEST_GOLDEN: usize = 1 << 30;
/// Tolerances of outputs against the golden file, relative and below it absolute.
const RELATIVE: f64 = 1e-3;
const ABSOLUTE: f64 = 1e-5;

/// Inputs of loading a model.
pub(crate) struct Loading<'a> {
    pub(crate) engine: &'static Engine,
    pub(crate) plans: BuildOptions,
    pub(crate) spec: &'a ModelSpec,
    pub(crate) files: &'a ModelFiles,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) turns: &'a Arc<Turns>,
    pub(crate) hooks: Option<&'a HookLoader>,
    pub(crate) max_nodes: Option<usize>,
}

impl Loading<'_> {
    fn load_hooks(&self, file: &Path) -> Result<Arc<dyn Hooks>, OpError> {
        let none = || bad("hooks: this server runs without Python, which hooks need".to_owned());
        let load = self.hooks.ok_or_else(none)?;
        regular::open(file, regular::USUAL).map_err(|error| bad(format!("hooks: {}: {error}", file.display())))?;
        load(file).map_err(|words| bad(format!("hooks: {words}")))
    }

    /// Reads the symbol, by the hook of the model if there is one.
    fn symbol(&self, hooks: Option<&Arc<dyn Hooks>>) -> Result<Symbol, OpError> {
        let (memory, file) = (self.engine.memory(), &self.files.symbol);
        let text = match read_by_hook(hooks, file)? {
            Some(bytes) => String::from_utf8(bytes)
                .map_err(|_| bad(format!("hooks: load('{}') gave bytes that are no UTF-8 text", file.display())))?,
            None => mxrt_io::read_text_within(file, memory)
                .map_err(|error| OpError::new(FailureKind::Data, naming(file, &error)))?,
        };
        let options = LoadOptions { memory: Some(memory), max_nodes: self.max_nodes, ..LoadOptions::default() };
        let named = |error| {
            let mut error = OpError::from(error);
            error.message = naming(file, &error.message);
            error
        };
        Ok(Symbol::load_json_with(&text, options).map_err(named)?.symbol)
    }

    /// Reads the parameters, by the hook of the model if there is one, by their names without
    /// `arg:` and `aux:`.
    fn parameters(&self, hooks: Option<&Arc<dyn Hooks>>) -> Result<HashMap<String, NDArray>, OpError> {
        let Some(file) = &self.files.params else { return Ok(HashMap::new()) };
        let loaded = match read_by_hook(hooks, file)? {
            Some(bytes) => params::load_from_bytes(self.engine, &bytes, NpShape::Global),
            None => params::load(self.engine, file, NpShape::Global),
        };
        named(loaded.map_err(|error| OpError::new(FailureKind::Data, naming(file, &error)))?)
    }
}

/// Returns the text of an error, with the name of the file if it lacks it.
fn naming(file: &Path, error: &dyn std::fmt::Display) -> String {
    let (file, words) = (file.display().to_string(), error.to_string());
    if words.contains(&file) { words } else { format!("{file}: {words}") }
}

/// Reads a file of a model by its hook, if it has one that does.
fn read_by_hook(hooks: Option<&Arc<dyn Hooks>>, file: &Path) -> Result<Option<Vec<u8>>, OpError> {
    let Some(hooks) = hooks else { return Ok(None) };
    hooks.read(file).map_err(|error| bad(format!("hooks: load('{}'): {}", file.display(), error.message())))
}

/// Reads the names of classes, one a line.
fn names_of_classes(file: &Path) -> Result<Vec<String>, OpError> {
    let text = regular::read_text(file, regular::USUAL).map_err(|error| {
        let words = format!("labels: '{}': {error}; expected a text, the name of a class a line", file.display());
        OpError::new(FailureKind::Data, words)
    })?;
    let names: Vec<String> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(bad(format!("labels: '{}' has no lines; expected the name of a class a line", file.display())));
    }
    Ok(names)
}

/// Returns whether the last operator of the graph makes probabilities.
fn gives_probabilities(symbol: &Symbol) -> bool {
    const OPERATORS: [&str; 6] =
        ["softmax", "SoftmaxOutput", "Softmax", "SoftmaxActivation", "sigmoid", "LogisticRegressionOutput"];
    /// Operators that change no numbers.
    const PASSED: [&str; 5] = ["reshape", "Reshape", "Flatten", "identity", "BlockGrad"];
    let [last] = symbol.outputs() else { return false };
    let mut node = last.node.clone();
    loop {
        let Some(operator) = node.op.map(|operator| operator.name) else { return false };
        if !PASSED.contains(&operator) {
            return OPERATORS.contains(&operator);
        }
        let Some(before) = node.inputs.first().map(|entry| entry.node.clone()) else { return false };
        node = before;
    }
}

/// Takes the names of parameters without `arg:` and `aux:`.
fn named(loaded: Params) -> Result<HashMap<String, NDArray>, OpError> {
    let named = match loaded {
        Params::Named(named) => named,
        // The file of a network without parameters is an empty list.
        Params::List(arrays) if arrays.is_empty() => Vec::new(),
        Params::List(_) => return Err(bad("the parameters have no names: Invalid param file format".to_owned())),
    };
    let bare = |name: String| match name.strip_prefix("arg:").or_else(|| name.strip_prefix("aux:")) {
        Some(bare) => bare.to_owned(),
        None => name,
    };
    Ok(named.into_iter().map(|(name, array)| (bare(name), array)).collect())
}

/// The queue of a model's requests, with the bounds that its settings give.
fn queue(name: &str, settings: &ModelSettings) -> Arc<Queue> {
    Queue::new(
        format!("the queue of '{name}'"),
        settings.queue_requests.unwrap_or(usize::MAX),
        settings.queue_bytes.unwrap_or(usize::MAX),
    )
}

impl Model {
    /// Reads the files of a model and checks it. Calls it with one row of zeros if the shapes of
    /// its inputs leave only the batch open, so that errors show before the first request. Also
    /// calls it with the shapes of the setting `warm`, and with the golden file.
    pub(crate) fn load(loading: &Loading<'_>) -> Result<Model, OpError> {
        Model::loaded(loading).map_err(|error| {
            let mut error = explain::with_origin(error, &loading.spec.settings);
            error.message = loading.files.shown(&error.message);
            error
        })
    }

    fn loaded(loading: &Loading<'_>) -> Result<Model, OpError> {
        let mut model = Model::read(loading)?;
        let answered = model.answer_zeros(1).map_err(|error| explain::by_setting(error, &model.settings))?;
        model.choose_batching()?;
        model.warm()?;
        model.check_labels()?;
        model.check_preprocess()?;
        let golden = loading.spec.settings.golden.as_deref();
        golden.map(|golden| model.check_golden(golden)).transpose()?;
        if !answered && golden.is_none() && model.settings.warm.is_empty() {
            let lacks_parameters = loading.files.params.is_none();
            let advice = if lacks_parameters { "; no file of parameters was found, so all are inputs" } else { "" };
            model.untried = model.unknown_shapes().map(|words| words + advice);
        }
        Ok(model)
    }

    fn read(loading: &Loading<'_>) -> Result<Model, OpError> {
        let Loading { engine, plans, spec, files, .. } = *loading;
        let hooks = spec.settings.hooks.as_deref().map(|file| loading.load_hooks(file)).transpose()?;
        let (symbol, params) = (loading.symbol(hooks.as_ref())?, loading.parameters(hooks.as_ref())?);
        let graph = ModelGraph::new(symbol, params, spec.settings.clone(), files)?;
        let FreeArguments { inputs, labels, arguments } = graph.arguments()?;
        let (bound, held) = graph.compile(engine, plans)?;
        let ModelGraph { symbol, params, settings, .. } = &graph;
        let types = ModelTypes::infer(symbol, params, &graph.free(), settings).map_err(|error| {
            let found = explain::of_call(engine, &bound, &arguments, &inputs, settings).unwrap_or(error);
            explain::by_setting(found, settings)
        })?;
        let feeds = Feed::all(symbol, params, inputs.iter().map(|name| types.of(name)).collect())?;
        let inputs: Vec<TensorInfo> = feeds.iter().flat_map(Feed::tensors).collect();
        let named = |all: &[TensorInfo]| all.iter().map(NamedTensor::from).collect();
        let own = Interface::new(named(&inputs), named(&types.outputs));
        let declared = hooks.as_ref().map(|hooks| Declared::by(&**hooks)).transpose()?.unwrap_or_default();
        let ModelGraph { symbol, settings, .. } = graph;
        let names = feeds.iter().map(|feed| feed.info.name.clone()).collect();
        Ok(Model {
            name: spec.name.clone(),
            version: settings.version.clone(),
            decodes: declared.inputs.is_some(),
            encodes: declared.outputs.is_some(),
            hooks_bodies: declared.bodies,
            offered: Interface::new(
                declared.inputs.unwrap_or_else(|| own.inputs.clone()),
                declared.outputs.unwrap_or_else(|| own.outputs.clone()),
            ),
            own,
            memory: 0,
            untried: None,
            gives_probabilities: gives_probabilities(&symbol),
            // Half of the threads for hooks.
            hook_places: Arc::new(Semaphore::new(engine.cores())),
            inputs,
            feeds,
            outputs: types.outputs,
            metrics: loading.metrics.clone(),
            queue: queue(&spec.name, &settings),
            classes: settings.labels.as_deref().map(names_of_classes).transpose()?.unwrap_or_default(),
            hooks,
            share: loading.turns.share(settings.weight, settings.calls.into_iter().chain(settings.cores).min()),
            settings,
            engine,
            bound,
            types: held,
            arguments,
            labels: Arc::new(Labels::new(symbol, labels, names)),
            batching: Err(""),
            bits: "",
        })
    }

    /// Calls the model with `rows` rows of zeros. Returns false without a call if an extent other
    /// than the first is unknown.
    fn answer_zeros(&self, rows: usize) -> Result<bool, OpError> {
        let Some(types) = self.sample(rows) else { return Ok(false) };
        self.answer_now(self.zeros(types)?).map(|_| true)
    }

    /// Returns the reason for which the model was not called, and advice, if an input's shape is
    /// unknown.
    fn unknown_shapes(&self) -> Option<String> {
        let unknown = |input: &&TensorInfo| {
            let dims = input.shape.dims();
            dims.is_none_or(|dims| dims.iter().skip(1).any(Option::is_none))
        };
        let input = self.feeds.iter().map(|feed| &feed.info).find(unknown)?;
        let (model, name) = (&self.name, &input.name);
        Some(format!(
            "not tried: the shape of '{name}' is not known; say it by shapes = {{ {name} = [-1, ...] }}, or \
             --shape {model}:{name}=-1,..., where -1 is the batch"
        ))
    }

    /// Checks that there is a name for each class.
    fn check_labels(&self) -> Result<(), OpError> {
        let names = self.classes.len();
        if names == 0 {
            return Ok(());
        }
        let [output] = &self.outputs[..] else {
            let outputs = self.outputs.len();
            return Err(bad(format!("labels: they name the classes of one output; the model has {outputs} outputs")));
        };
        let classes = output.shape.dims().and_then(|dims| dims.last().copied()).flatten();
        match classes.filter(|classes| *classes != names) {
            Some(classes) => Err(bad(format!(
                "labels: '{}' has {names} names; the output '{}' has {classes} classes, each of which needs a line",
                self.settings.labels.as_deref().unwrap_or(Path::new("")).display(),
                output.name
            ))),
            None => Ok(()),
        }
    }

    fn zeros(&self, types: Vec<TensorType>) -> Result<Vec<NDArray>, OpError> {
        self.feeds.iter().zip(types).map(|(feed, tensor)| feed.zeros(self.engine, tensor)).collect()
    }

    /// Computes the shapes of the setting `warm` once, so that their plans are built.
    fn warm(&self) -> Result<(), OpError> {
        for shapes in &self.settings.warm {
            let of = |feed: &Feed| {
                let input = &feed.info;
                let shape =
                    shapes.iter().find(|(name, _)| *name == input.name || (name.is_empty() && self.feeds.len() == 1));
                let (_, shape) =
                    shape.ok_or_else(|| bad(format!("warm: there is no shape of the input '{}'", input.name)))?;
                let tensor = TensorType::new(input.dtype, Shape::from(shape.clone()));
                input.check(&tensor).map_err(|refusal| bad(format!("warm: {}", refusal.message)))?;
                Ok(tensor)
            };
            let types = self.feeds.iter().map(of).collect::<Result<Vec<_>, OpError>>()?;
            self.answer_now(self.zeros(types)?)?;
        }
        Ok(())
    }

    /// Calls the model in this thread, and waits for the results.
    fn answer_now(&self, inputs: Vec<NDArray>) -> Result<Vec<NDArray>, OpError> {
        let labels = self.labels.types(shapes(&inputs))?;
        let arguments = self.arguments(inputs, &labels)?;
        let refs: Vec<&NDArray> = arguments.iter().collect();
        let started = self.bound.call(&refs, None, &CallOptions::default(), &mut Interrupter::never())?;
        let made = started.wait().map_err(|error| OpError::new(FailureKind::Operator, error.to_string()))?;
        Ok(made.into_vec())
    }

    /// Checks that images can become the input of the model.
    fn check_preprocess(&self) -> Result<(), OpError> {
        let Some(preprocess) = &self.settings.preprocess else { return Ok(()) };
        let [input] = &self.inputs[..] else {
            return Err(bad("preprocess: images become the one input of a model; it has several".to_owned()));
        };
        if !matches!(input.dtype, DType::F32 | DType::U8) {
            return Err(bad("preprocess: images become inputs of the types FP32 and UINT8 alone".to_owned()));
        }
        preprocess.check().map_err(|words| bad(format!("preprocess: {words}")))?;
        let fits = input.check(&preprocess.tensor(input.dtype));
        fits.map_err(|refusal| bad(format!("preprocess: {}", refusal.message)))
    }

    /// Checks that the model maps the inputs of a file to the outputs of the file.
    fn check_golden(&self, file: &Path) -> Result<(), OpError> {
        let wrong = |words: String| bad(format!("golden: '{}': {words}", file.display()));
        let bytes = regular::read(file, LARGEST_GOLDEN as u64).map_err(wrong)?;
        let mut charges = Vec::new();
        let mut charge = |bytes| {
            charges.push(self.engine.memory().charge(bytes).map_err(|error| error.to_string())?);
            Ok(())
        };
        let bounds = npy::Bounds { arrays: MOST_GOLDEN, bytes: LARGEST_GOLDEN, charge: &mut charge };
        let arrays = npy::read_npz(&bytes, bounds)
            .map_err(|words| wrong(format!("{words}; expected arrays by the names of inputs and outputs")))?;
        let there = || listed(&arrays.iter().take(8).map(|(name, _)| name).collect::<Vec<_>>());
        let array = |name: &str| {
            let found = arrays.iter().find(|(other, _)| other == name).map(|(_, bytes)| npy::read(bytes));
            found.transpose().map_err(|error| wrong(format!("'{name}': {error}")))
        };
        let input = |input: &TensorInfo| {
            let golden = array(&input.name)?
                .ok_or_else(|| wrong(format!("it has no input '{}'; its arrays are {}", input.name, there())))?;
            input.check(&golden.tensor).map_err(|refusal| wrong(refusal.message))?;
            array_of(self.engine, golden.tensor, golden.bytes)
        };
        let tensors = self.inputs.iter().map(input).collect::<Result<Vec<_>, OpError>>()?;
        let inputs = self.feeds.iter().map(|feed| feed.array(self.engine, &tensors)).collect::<Result<_, OpError>>();
        let made = self.answer_now(inputs.map_err(|error| wrong(error.message.clone()))?)?;
        let mut compared = 0;
        for (output, made) in self.outputs.iter().zip(&made) {
            let Some(golden) = array(&output.name)? else { continue };
            check_output(&output.name, made, &golden).map_err(wrong)?;
            compared += 1;
        }
        match compared {
            0 => Err(wrong(format!(
                "it has none of the outputs {}; its arrays are {}",
                listed(&self.outputs.iter().map(|o| &o.name).collect::<Vec<_>>()),
                there()
            ))),
            _ => Ok(()),
        }
    }

    /// Decides whether requests are joined into batches.
    fn choose_batching(&mut self) -> Result<(), OpError> {
        let joining = match (self.settings.batch, self.joined_rows()?) {
            (BatchChoice::Off, _) => Err("it is switched off"),
            (_, None) if self.unknown_shapes().is_some() => Err("the shape of a row is not known"),
            (_, None) => Err("the inputs have a fixed number of rows; -1 as the first extent of a shape means any"),
            (_, Some(JoinedRows::Dependent)) => Err("rows depend on each other, or on more than the inputs"),
            (BatchChoice::Auto, Some(JoinedRows::NoGain)) => Err("rows cost more than reading the weights"),
            (BatchChoice::Auto, Some(JoinedRows::Gain)) => Ok(Joining::of_rows(USUAL_ROWS)),
            (BatchChoice::Rows(0 | 1), _) => return Err(bad("batch: it has at least 2 rows".to_owned())),
            (BatchChoice::Rows(max), _) => Ok(Joining::of_rows(max)),
        };
        let mut joining = match joining {
            Ok(joining) => joining,
            Err(reason) => {
                self.batching = Err(reason);
                return Ok(());
            }
        };
        if !self.settings.sizes.is_empty() {
            joining.sizes.clone_from(&self.settings.sizes);
        }
        joining.max_delay = self.settings.max_delay;
        let same = self.has_bits_of_rows(&joining.sizes)?;
        (self.batching, self.bits) = match (same, self.settings.exact_bits) {
            (false, true) => (Err("the bits of a row depend on how many are computed together"), ""),
            (false, false) => (Ok(Batcher::new(joining)), "the last bits of a row depend on how many are joined"),
            (true, exact) => {
                joining.single_rows = exact;
                (Ok(Batcher::new(joining)), "rows have the bits that they have alone")
            }
        };
        Ok(())
    }

    /// Returns whether rows have the same bits in a batch as alone. Kernels divide sums by shapes,
    /// so rows of random numbers with many digits reveal differences.
    fn has_bits_of_rows(&self, sizes: &[usize]) -> Result<bool, OpError> {
        let Some(row) = self.sample(1) else { return Ok(false) };
        let most = sizes.last().copied().unwrap_or(1);
        let mut random = 0x9E37_79B9_7F4A_7C15;
        let mut some = || {
            let inputs = self.feeds.iter().zip(&row);
            let of = |(feed, tensor): (&Feed, &TensorType)| {
                feed.some_row(self.engine, tensor, |tensor| some_elements(tensor, &mut random))
            };
            inputs.map(of).collect::<Result<Vec<NDArray>, OpError>>()
        };
        let rows = (0..most).map(|_| some()).collect::<Result<Vec<_>, OpError>>()?;
        let answer = |rows: &[Vec<NDArray>]| {
            let join = |input: usize| {
                let parts: Vec<&NDArray> = rows.iter().map(|row| &row[input]).collect();
                batch::join(self.engine, &parts, rows.len())
            };
            let made = self.answer_now((0..row.len()).map(join).collect::<Result<_, OpError>>()?)?;
            let bytes = |array: &NDArray| {
                let guard = array.read().map_err(|error| OpError::new(FailureKind::Operator, error.to_string()))?;
                Ok(guard.tensor().bytes().to_vec())
            };
            made.iter().map(bytes).collect::<Result<Vec<_>, OpError>>()
        };
        let alone = rows.iter().map(|row| answer(std::slice::from_ref(row))).collect::<Result<Vec<_>, _>>()?;
        for size in sizes {
            let together = answer(&rows[..*size])?;
            for (output, bytes) in together.iter().enumerate() {
                let parts = alone[..*size].iter().flat_map(|row| &row[output]);
                if !parts.eq(bytes) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns what joining gains for inputs of two rows. Returns `None` if their shapes are not
    /// known.
    fn joined_rows(&self) -> Result<Option<JoinedRows>, OpError> {
        let free = |input: &TensorInfo| input.shape.dims().and_then(|dims| dims.first().copied()) == Some(None);
        let Some(types) = self.sample(2).filter(|_| self.feeds.iter().map(|feed| &feed.info).all(free)) else {
            return Ok(None);
        };
        let labels = self.labels.types(types.iter().map(|tensor| tensor.shape.clone()).collect())?;
        let argument = |argument: &GraphArgument| match *argument {
            GraphArgument::Input(i) => types[i].clone(),
            GraphArgument::Label(i) => labels[i].clone(),
        };
        self.bound.joined_rows(&self.arguments.iter().map(argument).collect::<Vec<_>>()).map(Some)
    }
}

/// Makes an array of these bytes.
fn array_of(engine: &'static Engine, tensor: TensorType, bytes: &[u8]) -> Result<NDArray, OpError> {
    let block = engine.memory().alloc(bytes.len());
    let mut block = block.map_err(|error| OpError::new(FailureKind::Memory, error.to_string()))?;
    block.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
    NDArray::from_block(engine, Context::cpu(0), tensor, block)
}

/// Makes random elements: numbers with many digits for floating types, 0 or 1 for integers.
fn some_elements(tensor: &TensorType, random: &mut u64) -> Vec<u8> {
    let mut next = || {
        // xorshift
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random
    };
    let mut bytes = Vec::with_capacity(tensor.bytes());
    for _ in 0..tensor.shape.size() {
        let number = (next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        match tensor.dtype {
            DType::F32 => bytes.extend_from_slice(&(number as f32).to_le_bytes()),
            DType::F64 => bytes.extend_from_slice(&number.to_le_bytes()),
            // Numbers from 1 to 2 with random low bits.
            DType::F16 => bytes.extend_from_slice(&(0x3C00 | (next() as u16 & 0x3FF)).to_le_bytes()),
            DType::BF16 => bytes.extend_from_slice(&(0x3F80 | (next() as u16 & 0x7F)).to_le_bytes()),
            dtype => {
                bytes.push((next() & 1) as u8);
                bytes.resize(bytes.len() + dtype.size() - 1, 0);
            }
        }
    }
    bytes
}

/// Checks that an output has the type, the shape and about the elements that a file has for it.
fn check_output(name: &str, made: &NDArray, golden: &npy::NpyArray<'_>) -> Result<(), String> {
    let guard = made.read().map_err(|error| error.to_string())?;
    let tensor = guard.tensor();
    if (tensor.dtype, tensor.shape) != (golden.tensor.dtype, &golden.tensor.shape) {
        return Err(format!("the output '{name}' has another type or shape there"));
    }
    match difference(tensor.dtype, tensor.bytes(), golden.bytes) {
        None => Ok(()),
        Some((place, got, wanted)) => {
            Err(format!("the output '{name}' is {got} at element {place}, where the file has {wanted}"))
        }
    }
}

/// Returns the first element in which two arrays differ by more than the tolerances, and both
/// values.
fn difference(dtype: DType, got: &[u8], wanted: &[u8]) -> Option<(usize, f64, f64)> {
    let near = |got: f64, wanted: f64| {
        got == wanted || (got.is_nan() && wanted.is_nan()) || (got - wanted).abs() <= ABSOLUTE + RELATIVE * wanted.abs()
    };
    macro_rules! first {
        ($type:ty) => {{
            let size = size_of::<$type>();
            let number = |bytes: &[u8]| <$type>::from_le_bytes(bytes.try_into().unwrap_or_default()) as f64;
            let pairs = got.chunks_exact(size).zip(wanted.chunks_exact(size));
            let pairs = pairs.map(|(got, wanted)| (number(got), number(wanted))).enumerate();
            pairs.map(|(place, (got, wanted))| (place, got, wanted)).find(|(_, got, wanted)| !near(*got, *wanted))
        }};
    }
    match dtype {
        DType::F32 => first!(f32),
        DType::F64 => first!(f64),
        DType::I32 => first!(i32),
        DType::I64 => first!(i64),
        // Compared exactly: small integers, and 16-bit floats, whose values are not decoded here.
        _ => got.iter().zip(wanted).position(|(got, wanted)| got != wanted).map(|byte| {
            let size = dtype.size();
            (byte / size, f64::from(got[byte]), f64::from(wanted[byte]))
        }),
    }
}
