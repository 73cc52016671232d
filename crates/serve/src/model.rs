//! One version of a model: loading, the types of its inputs and outputs, calls.

use crate::batch::{Batcher, USUAL_ROWS};
use crate::metrics::ModelMetrics;
use crate::protocol::{datatype_of, short};
use crate::refusal::Refusal;
use mxrt_engine::{Engine, Failure, FailureKind, OpError, Var};
use mxrt_graph::{BoundOp, BuildOptions, CachedOp, CachedOpFlags, CallOptions, Interrupter, JoinedRows, Symbol};
use mxrt_io::params::{self, NpShape, Params};
use mxrt_tensor::{Context, DType, LateArray, NDArray, PartialShape, Shape, TensorType};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Shapes of labels are remembered for so many shapes of inputs.
const LABEL_SHAPES: usize = 64;

/// What runs the models, in their metadata.
pub(crate) const PLATFORM: &str = "mxnet_mxrt";

/// Names of variables that end so are parameters, by MXNet's habit.
const PARAMETER_ENDINGS: [&str; 7] = ["weight", "bias", "gamma", "beta", "mean", "var", "parameters"];

/// Where a model is, and what its files do not say.
#[derive(Clone, Debug, Default)]
pub struct ModelSpec {
    /// name that requests use
    pub name: String,
    /// version that requests use
    pub version: String,
    /// the `-symbol.json`
    pub symbol: PathBuf,
    /// the `.params`; none for a graph without parameters
    pub params: Option<PathBuf>,
    /// shapes of inputs; -1 stands for any extent
    pub shapes: Vec<(String, Vec<i64>)>,
    /// types of inputs, where they are not those that the graph asks for
    pub dtypes: Vec<(String, DType)>,
    /// options of the graph, as `hybridize` takes them
    pub flags: Vec<(String, String)>,
    /// whether requests that wait are joined
    pub batch: BatchChoice,
}

/// Whether requests that wait are joined into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchChoice {
    /// never: answers have the bits of calls of their own
    #[default]
    Off,
    /// where the estimates of the plan say that it is worth it
    Auto,
    /// wherever rows do not depend on each other, at most so many rows
    Rows(usize),
}

/// What is known of an input or output.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: PartialShape,
}

impl TensorInfo {
    /// The shape as the protocol writes it: -1 for an extent that is free. Where not even the
    /// number of axes is known, it is one -1.
    pub(crate) fn extents(&self) -> Vec<i64> {
        match self.shape.dims() {
            None => vec![-1],
            Some(dims) => dims.iter().map(|d| d.and_then(|d| i64::try_from(d).ok()).unwrap_or(-1)).collect(),
        }
    }
}

/// Numbers of the inputs that a request gives, in its order, and of the outputs that it wants.
pub(crate) struct Signature {
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
}

/// An argument of the bound graph.
#[derive(Clone, Copy, Debug)]
enum Argument {
    /// number of the input
    Input(usize),
    /// a label: zeros, whose shape follows from the inputs
    Label(usize),
}

/// A loaded model that any number of requests use at a time.
pub struct Model {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) inputs: Vec<TensorInfo>,
    pub(crate) outputs: Vec<TensorInfo>,
    pub(crate) metrics: ModelMetrics,
    engine: &'static Engine,
    symbol: Symbol,
    bound: Arc<BoundOp>,
    arguments: Vec<Argument>,
    labels: Vec<String>,
    label_types: Mutex<HashMap<Vec<Shape>, Vec<TensorType>>>,
    /// joins requests, or why it does not
    batching: Result<Batcher, &'static str>,
}

/// A result that is on its way.
enum Pending {
    Array(NDArray),
    Late(LateArray),
}

fn bad(message: String) -> OpError {
    OpError::new(FailureKind::Value, message)
}

impl Model {
    /// Reads a model's files. Where its inputs' shapes leave only the batch open, the model answers
    /// once for one row of zeros, so that what is wrong with it is known before the first request.
    pub fn load(engine: &'static Engine, options: BuildOptions, spec: &ModelSpec) -> Result<Model, OpError> {
        let named = |error: OpError| {
            let (kind, message) = (error.kind, format!("model '{}': {}", spec.name, error.message));
            OpError::new(kind, message)
        };
        let mut model = Model::read(engine, options, spec).map_err(named)?;
        model.warm().map_err(named)?;
        model.choose_batching(spec.batch).map_err(named)?;
        Ok(model)
    }

    fn read(engine: &'static Engine, options: BuildOptions, spec: &ModelSpec) -> Result<Model, OpError> {
        let text = mxrt_io::read_text(&spec.symbol)
            .map_err(|e| OpError::new(FailureKind::Data, format!("{}: {e}", spec.symbol.display())))?;
        let symbol = Symbol::load_json(&text)?.symbol;
        let loaded = match &spec.params {
            None => Params::Named(Vec::new()),
            Some(file) => params::load(engine, file, NpShape::Global)
                .map_err(|e| OpError::new(FailureKind::Data, format!("{}: {e}", file.display())))?,
        };
        let Params::Named(named) = loaded else {
            return Err(bad("the parameters have no names: Invalid param file format".to_owned()));
        };
        let names = symbol.list_inputs();
        let declared: HashSet<&str> = spec.shapes.iter().map(|(name, _)| name.as_str()).collect();
        let mut params: HashMap<String, NDArray> = HashMap::new();
        for (name, array) in named {
            let bare = name.strip_prefix("arg:").or_else(|| name.strip_prefix("aux:")).unwrap_or(&name);
            if !declared.contains(bare) {
                params.insert(bare.to_owned(), array);
            }
        }
        let states: HashSet<String> = symbol.list_auxiliary_states().into_iter().collect();
        let free: Vec<&String> = names.iter().filter(|name| !params.contains_key(*name)).collect();
        let is_parameter = |name: &str| {
            states.contains(name) || (!declared.contains(name) && PARAMETER_ENDINGS.iter().any(|e| name.ends_with(e)))
        };
        if let Some(lacking) = free.iter().find(|name| is_parameter(name)) {
            return Err(bad(format!(
                "there is no value for the parameter '{lacking}'; an input of that name needs a shape"
            )));
        }
        let unknown = declared.iter().find(|name| !free.iter().any(|free| free == *name));
        if let Some(unknown) = unknown.or(spec
            .dtypes
            .iter()
            .map(|(name, _)| name.as_str())
            .find(|n| !free.iter().any(|f| f == n))
            .as_ref())
        {
            return Err(bad(format!("there is no input '{unknown}'; the inputs are {}", listed(&free))));
        }
        let is_label = |name: &str| name.ends_with("label") && !declared.contains(name);
        let (mut inputs, mut labels, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        let types = Types::infer(&symbol, &params, &free, spec)?;
        for name in &free {
            if is_label(name) {
                arguments.push(Argument::Label(labels.len()));
                labels.push((*name).clone());
            } else {
                arguments.push(Argument::Input(inputs.len()));
                inputs.push(types.of(name));
            }
        }
        let positions = |of: &dyn Fn(&String) -> bool| {
            let numbers: String =
                names.iter().enumerate().filter(|(_, n)| of(n)).map(|(i, _)| format!("{i},")).collect();
            format!("({numbers})")
        };
        let data = positions(&|name| !params.contains_key(name));
        let held = positions(&|name| params.contains_key(name));
        let own = spec.flags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let flags = own.chain([("data_indices", data.as_str()), ("param_indices", held.as_str())]);
        let op = CachedOp::compile(engine, &symbol, &CachedOpFlags::parse(flags)?, options)?;
        let arrays: Vec<Option<&NDArray>> = names.iter().map(|name| params.get(name)).collect();
        let bound = Arc::new(BoundOp::new(Arc::new(op), &arrays)?);
        Ok(Model {
            name: spec.name.clone(),
            version: spec.version.clone(),
            inputs,
            outputs: types.outputs,
            metrics: ModelMetrics::default(),
            engine,
            symbol,
            bound,
            arguments,
            labels,
            label_types: Mutex::default(),
            batching: Err(""),
        })
    }

    /// Decides whether requests are joined.
    fn choose_batching(&mut self, choice: BatchChoice) -> Result<(), OpError> {
        self.batching = match (choice, self.joined_rows()?) {
            (BatchChoice::Off, _) => Err("it is switched off"),
            (_, None) => Err("the shape of a row is not known"),
            (_, Some(JoinedRows::Dependent)) => Err("rows depend on each other, or on more than the inputs"),
            (BatchChoice::Auto, Some(JoinedRows::NoGain)) => Err("rows cost more than reading the weights"),
            (BatchChoice::Auto, Some(JoinedRows::Gain)) => Ok(Batcher::new(USUAL_ROWS)),
            (BatchChoice::Rows(0 | 1), _) => return Err(bad("a batch has at least 2 rows".to_owned())),
            (BatchChoice::Rows(max), _) => Ok(Batcher::new(max)),
        };
        Ok(())
    }

    /// What joining does, for inputs of two rows; none where their shapes are not known.
    fn joined_rows(&self) -> Result<Option<JoinedRows>, OpError> {
        let free = |input: &TensorInfo| input.shape.dims().and_then(|dims| dims.first().copied()) == Some(None);
        let Some(mut types) = self.sample().filter(|_| self.inputs.iter().all(free)) else { return Ok(None) };
        for tensor in &mut types {
            let rest = tensor.shape.iter().skip(1).copied();
            tensor.shape = Shape::from(std::iter::once(2).chain(rest).collect::<Vec<_>>());
        }
        let labels = self.label_types(types.iter().map(|tensor| tensor.shape.clone()).collect())?;
        let argument = |argument: &Argument| match *argument {
            Argument::Input(i) => types[i].clone(),
            Argument::Label(i) => labels[i].clone(),
        };
        self.bound.joined_rows(&self.arguments.iter().map(argument).collect::<Vec<_>>()).map(Some)
    }

    /// Joins requests, where that is done.
    pub(crate) fn batcher(&self) -> Option<&Batcher> {
        self.batching.as_ref().ok()
    }

    /// The engine that runs it.
    pub(crate) fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// Answers once for zeros, where at most the first extents are free.
    fn warm(&self) -> Result<(), OpError> {
        let Some(types) = self.sample() else { return Ok(()) };
        let zeros = types.into_iter().map(|tensor| NDArray::new(self.engine, Context::cpu(0), tensor));
        let arguments = self.arguments(zeros.collect::<Result<_, OpError>>()?)?;
        let refs: Vec<&NDArray> = arguments.iter().collect();
        let made = self.bound.call_with(&refs, None, &CallOptions::default())?;
        for array in &made {
            array.wait_to_read().map_err(|error| OpError::new(FailureKind::Operator, error.to_string()))?;
        }
        Ok(())
    }

    /// Types of inputs of one row; none where more than the first extents are free.
    pub(crate) fn sample(&self) -> Option<Vec<TensorType>> {
        let one_row = |input: &TensorInfo| {
            let mut extents = input.shape.dims()?.to_vec();
            if let Some(rows) = extents.first_mut() {
                rows.get_or_insert(1);
            }
            Some(TensorType { dtype: input.dtype, shape: PartialShape::from_dims(extents).complete()? })
        };
        self.inputs.iter().map(one_row).collect()
    }

    /// The input of this name, and its number. An error says which there are.
    fn input(&self, name: &str, tensor: &TensorType) -> Result<usize, Refusal> {
        let found = self.inputs.iter().position(|input| input.name == name);
        let number = found.ok_or_else(|| {
            let names: Vec<&String> = self.inputs.iter().map(|input| &input.name).collect();
            Refusal::invalid(format!("the model has no input '{}'; its inputs are {}", short(name), listed(&names)))
        })?;
        let wanted = &self.inputs[number];
        if tensor.dtype != wanted.dtype {
            return Err(Refusal::invalid(format!(
                "input '{name}': got {}, wanted {}",
                datatype_of(tensor.dtype),
                datatype_of(wanted.dtype)
            )));
        }
        let fits = wanted.shape.dims().is_none_or(|dims| {
            dims.len() == tensor.shape.len()
                && dims.iter().zip(tensor.shape.iter()).all(|(w, g)| w.is_none_or(|w| w == *g))
        });
        if !fits {
            return Err(Refusal::invalid(format!(
                "input '{name}': got the shape {:?}, wanted {:?}, where -1 is any extent",
                &tensor.shape[..],
                wanted.extents()
            )));
        }
        Ok(number)
    }

    /// The number of the output of this name. An error says which there are.
    fn output(&self, name: &str) -> Result<usize, Refusal> {
        self.outputs.iter().position(|output| output.name == name).ok_or_else(|| {
            let names: Vec<&String> = self.outputs.iter().map(|output| &output.name).collect();
            Refusal::invalid(format!("the model has no output '{}'; its outputs are {}", short(name), listed(&names)))
        })
    }

    /// The protocol's metadata, with the versions that there are of it.
    pub(crate) fn metadata(&self, versions: &[String]) -> Value {
        let tensor = |info: &TensorInfo| json!({ "name": info.name, "datatype": datatype_of(info.dtype), "shape": info.extents() });
        json!({
            "name": self.name,
            "versions": versions,
            "platform": PLATFORM,
            "inputs": self.inputs.iter().map(tensor).collect::<Vec<_>>(),
            "outputs": self.outputs.iter().map(tensor).collect::<Vec<_>>(),
            "parameters": {
                "batch": match &self.batching {
                    Ok(batcher) => format!("at most {} rows; the last bits of a row may depend on the size", batcher.max()),
                    Err(reason) => format!("off: {reason}"),
                },
            },
        })
    }

    /// Finds inputs by name and type, and outputs by name; none stands for all outputs.
    pub(crate) fn signature<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, &'a TensorType)>,
        outputs: Option<&[&str]>,
    ) -> Result<Signature, Refusal> {
        let mut numbers = Vec::with_capacity(self.inputs.len());
        for (name, tensor) in inputs {
            let number = self.input(name, tensor)?;
            if numbers.contains(&number) {
                return Err(Refusal::invalid(format!("the input '{name}' is given twice")));
            }
            numbers.push(number);
        }
        if let Some(lacking) = (0..self.inputs.len()).find(|number| !numbers.contains(number)) {
            return Err(Refusal::invalid(format!("the input '{}' is missing", self.inputs[lacking].name)));
        }
        let Some(names) = outputs else {
            return Ok(Signature { inputs: numbers, outputs: (0..self.outputs.len()).collect() });
        };
        let mut wanted = Vec::with_capacity(names.len());
        for name in names {
            let number = self.output(name)?;
            if wanted.contains(&number) {
                return Err(Refusal::invalid(format!("the output '{name}' is wanted twice")));
            }
            wanted.push(number);
        }
        Ok(Signature { inputs: numbers, outputs: wanted })
    }

    /// Runs the model. The arrays are those of all inputs, in their order. The results are there
    /// when this returns; if it is dropped first, a call that has not started does not run.
    pub(crate) async fn call(&self, arrays: Vec<NDArray>, mut options: CallOptions) -> Result<Vec<NDArray>, Refusal> {
        options.cancel_on_drop = true;
        let arguments = self.arguments(arrays).map_err(|e| Refusal::of_call(&e))?;
        let inline = {
            let refs: Vec<&NDArray> = arguments.iter().collect();
            self.bound.try_call_inline(&refs, None, &options)
        };
        let started = match inline {
            Some(made) => made.map(|made| made.into_iter().map(Pending::Array).collect()),
            // It builds a plan, or computes in the calling thread for longer.
            None => {
                let bound = self.bound.clone();
                let begun = tokio::task::spawn_blocking(move || start(&bound, &arguments, &options)).await;
                begun.unwrap_or_else(|e| Err(OpError::new(FailureKind::Panic, e.to_string())))
            }
        };
        let pending: Vec<Pending> = started.map_err(|e| Refusal::of_call(&e))?;
        let mut results = Vec::with_capacity(pending.len());
        for result in pending {
            let array = match result {
                Pending::Array(array) => array,
                Pending::Late(late) => {
                    ready(self.engine, late.done().var()).await?;
                    let lost = || Refusal::of_failure(&bad("the model made no array".to_owned()));
                    late.get().cloned().ok_or_else(lost)?
                }
            };
            ready(self.engine, array.var()).await?;
            results.push(array);
        }
        Ok(results)
    }

    /// The arrays of inputs with those of labels, as the graph takes them.
    fn arguments(&self, inputs: Vec<NDArray>) -> Result<Vec<NDArray>, OpError> {
        if self.labels.is_empty() {
            return Ok(inputs);
        }
        let labels = self.label_types(inputs.iter().map(|array| array.shape().clone()).collect())?;
        let argument = |argument: &Argument| match *argument {
            Argument::Input(i) => Ok(inputs[i].clone()),
            Argument::Label(i) => NDArray::new(self.engine, Context::cpu(0), labels[i].clone()),
        };
        self.arguments.iter().map(argument).collect()
    }

    /// Types of labels for inputs of these shapes.
    fn label_types(&self, shapes: Vec<Shape>) -> Result<Vec<TensorType>, OpError> {
        if self.labels.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(known) = self.label_types.lock().unwrap_or_else(PoisonError::into_inner).get(&shapes) {
            return Ok(known.clone());
        }
        let given = self.inputs.iter().zip(&shapes);
        let given: Vec<_> =
            given.map(|(i, s)| (i.name.clone(), PartialShape::from_dims(s.iter().copied().map(Some)))).collect();
        let found = self.symbol.infer_shape(&given, true)?;
        let arguments = self.symbol.list_arguments();
        let of_label = |label: &String| {
            let shape = arguments.iter().zip(&found.args).find(|(name, _)| *name == label);
            let shape = shape.and_then(|(_, shape)| shape.complete());
            let unknown = || bad(format!("the shape of '{label}' does not follow from the inputs"));
            Ok(TensorType { dtype: DType::F32, shape: shape.ok_or_else(unknown)? })
        };
        let types: Vec<TensorType> = self.labels.iter().map(of_label).collect::<Result<_, OpError>>()?;
        let mut known = self.label_types.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LABEL_SHAPES {
            known.clear();
        }
        known.insert(shapes, types.clone());
        Ok(types)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({} {}: {:?} -> {:?})", self.name, self.version, self.inputs, self.outputs)
    }
}

fn start(bound: &BoundOp, arguments: &[NDArray], options: &CallOptions) -> Result<Vec<Pending>, OpError> {
    let refs: Vec<&NDArray> = arguments.iter().collect();
    if bound.op().is_late() {
        let made = bound.call_late(&refs, options, &mut Interrupter::never())?;
        return Ok(made.into_iter().map(Pending::Late).collect());
    }
    let made = bound.call_with(&refs, None, options)?;
    Ok(made.into_iter().map(Pending::Array).collect())
}

/// Returns when the variable's value is there, or the failure that it holds.
async fn ready(engine: &'static Engine, var: &Var) -> Result<(), Refusal> {
    let (told, ready) = oneshot::channel();
    engine.on_ready(var, move |outcome: Result<(), Failure>| {
        if let Err(failure) = &outcome {
            failure.mark_observed();
        }
        // The request may have been given up meanwhile.
        let _ = told.send(outcome);
    });
    match ready.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(Refusal::of_failure(failure.details())),
        Err(_) => Err(Refusal::draining()),
    }
}

fn listed(names: &[&String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Types that follow from the parameters and from what the user says.
struct Types {
    inputs: HashMap<String, TensorInfo>,
    outputs: Vec<TensorInfo>,
}

impl Types {
    fn infer(
        symbol: &Symbol,
        params: &HashMap<String, NDArray>,
        free: &[&String],
        spec: &ModelSpec,
    ) -> Result<Types, OpError> {
        let extent = |extent: &i64| usize::try_from(*extent).ok();
        let said = spec.shapes.iter().map(|(name, s)| (name.clone(), PartialShape::from_dims(s.iter().map(extent))));
        let of_params = params.iter().map(|(name, array)| {
            let extents = array.shape().iter().copied().map(Some);
            (name.clone(), PartialShape::from_dims(extents))
        });
        let shapes = symbol.infer_shape(&of_params.chain(said).collect::<Vec<_>>(), true)?;
        let of_params = params.iter().map(|(name, array)| (name.clone(), array.dtype()));
        let known: Vec<(String, DType)> = of_params.chain(spec.dtypes.iter().cloned()).collect();
        let open = symbol.infer_type(&known, true)?;
        let arguments = symbol.list_arguments();
        let dtype_of: HashMap<&String, Option<DType>> = arguments.iter().zip(open.args.iter().copied()).collect();
        // What nothing asks for is float32, as everywhere in MXNet.
        let dtype = |name: &String| dtype_of.get(name).copied().flatten().unwrap_or(DType::F32);
        let all = known.iter().cloned().chain(free.iter().map(|name| ((*name).clone(), dtype(name))));
        let types = symbol.infer_type(&all.collect::<Vec<_>>(), true)?;
        let info = |name: &String, dtype: DType, shape: &PartialShape| TensorInfo {
            name: name.clone(),
            dtype,
            shape: shape.clone(),
        };
        let inputs = arguments.iter().zip(&shapes.args).map(|(name, s)| (name.clone(), info(name, dtype(name), s)));
        let outputs = symbol.list_outputs();
        let outputs = outputs.iter().zip(&shapes.outs).zip(&types.outs);
        Ok(Types {
            inputs: inputs.collect(),
            outputs: outputs.map(|((name, s), dtype)| info(name, dtype.unwrap_or(DType::F32), s)).collect(),
        })
    }

    fn of(&self, name: &str) -> TensorInfo {
        let unknown = || TensorInfo { name: name.to_owned(), dtype: DType::F32, shape: PartialShape::UNKNOWN };
        self.inputs.get(name).cloned().unwrap_or_else(unknown)
    }
}
