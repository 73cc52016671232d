//! [`Predictor`]: a symbol, parameters and the shapes of the inputs.

use crate::CallOptions;
use crate::network::{Network, NetworkTypes, Site};
use crate::params::Params;
use crate::{Context, DType, NDArray, Shape, Symbol};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BuildOptions, Watch, WatchCallback};
use mxrt_tensor::{PartialShape, TensorType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Names and shapes of the inputs that a caller sets, and the element types of some of them.
#[derive(Clone, Debug, Default)]
pub struct PredictorInputs {
    /// names and shapes
    pub shapes: Vec<(String, Shape)>,
    /// types of arguments; others have those of the parameters, or are float32
    pub dtypes: Vec<(String, DType)>,
}

/// State that predictors of one model share.
struct Model {
    network: Network,
    dtypes: Vec<(String, DType)>,
    /// operators and variables
    nodes: usize,
}

/// An argument that is not a parameter.
struct PredictorInput {
    name: String,
    tensor: TensorType,
    /// set by the caller; others are labels, which are zero unless they are set
    declared: bool,
}

#[derive(Clone)]
struct Watcher {
    watch: Arc<Watch>,
    monitor: Arc<WatchCallback>,
}

#[derive(Default)]
struct State {
    /// arrays by input; empty where none was set
    arrays: Vec<Option<NDArray>>,
    outputs: Option<Vec<NDArray>>,
    watcher: Option<Watcher>,
}

/// A model for inputs of fixed shapes: set the inputs, run, read the outputs.
///
/// Predictors of one model ([`Predictor::reshape`], [`Predictor::another`]) share graph and
/// parameters; each has inputs and outputs of its own. Several threads may use one: each run takes
/// the inputs as they are at its begin.
pub struct Predictor {
    model: Arc<Model>,
    shapes: Vec<(String, Shape)>,
    inputs: Vec<PredictorInput>,
    outputs: Vec<TensorType>,
    state: Mutex<State>,
}

fn bad(message: String) -> OpError {
    OpError::new(FailureKind::Value, message).op("Predictor")
}

/// Inputs whose shapes are given: free arguments, each once. Names that the symbol lacks count for
/// nothing, as in MXNet: programs name the label of any network.
fn known_inputs<'a>(
    network: &Network,
    shapes: &'a [(String, Shape)],
) -> Result<HashMap<&'a String, PartialShape>, OpError> {
    let arguments = network.symbol.list_arguments();
    let mut known = HashMap::new();
    for (name, shape) in shapes.iter().filter(|(name, _)| arguments.contains(name)) {
        if network.params.contains_key(name) {
            let inputs: Vec<&str> = network.free().map(String::as_str).collect();
            let message = format!("cannot find input key {name}, a parameter: the inputs are {}", inputs.join(", "));
            return Err(bad(message));
        }
        if known.insert(name, PartialShape::from_zero_unknown(shape)).is_some() {
            return Err(bad(format!("the input key {name} is given twice")));
        }
    }
    Ok(known)
}

/// The end of errors about inputs that were not given: names that the symbol lacks, if there are any.
fn lacking(network: &Network, shapes: &[(String, Shape)]) -> String {
    let inputs: Vec<&str> = network.free().map(String::as_str).collect();
    let given = shapes.iter().map(|(name, _)| name.as_str());
    let unknown: Vec<&str> = given.filter(|name| !inputs.contains(name)).collect();
    if unknown.is_empty() {
        return String::new();
    }
    format!("; cannot find input key {}: the inputs are {}", unknown.join(", "), inputs.join(", "))
}

/// Checks the types of the parameters, and returns those of the other variables. Each of them is
/// declared, or a label; `lacking` ends the error of one that is neither.
fn network_inputs(
    network: &Network,
    types: &NetworkTypes,
    declared: &HashSet<&String>,
    lacking: &dyn Fn() -> String,
) -> Result<Vec<PredictorInput>, OpError> {
    let of_shape = |message| OpError::new(FailureKind::Shape, message).op("Predictor");
    let mut inputs = Vec::new();
    for name in &network.names {
        let found = types.variables.get(name);
        let Some(shape) = found.and_then(|found| found.shape.complete()) else {
            let lacking = lacking();
            let message = format!("the shapes of the inputs are not enough to get the shape of '{name}'{lacking}");
            return Err(of_shape(message));
        };
        let dtype = found.and_then(|found| found.dtype).unwrap_or(DType::F32);
        let tensor = TensorType { dtype, shape };
        match network.params.get(name) {
            Some(param) if param.shape() != &tensor.shape => {
                return Err(of_shape(format!(
                    "the parameter '{name}' has the shape {}, but the shapes of the inputs ask for {}",
                    param.shape(),
                    tensor.shape
                )));
            }
            Some(_) => {}
            None => inputs.push(PredictorInput { declared: declared.contains(name), name: name.clone(), tensor }),
        }
    }
    match inputs.iter().find(|input| !input.declared && !network.labels.contains(&input.name)) {
        Some(lost) => Err(bad(format!("'{}' is neither a parameter nor among the input keys{}", lost.name, lacking()))),
        None => Ok(inputs),
    }
}

impl Predictor {
    /// Binds a symbol to its parameters, named as in files (`arg:weight`, `aux:mean`), for inputs
    /// of these shapes.
    ///
    /// Labels ([`Symbol::labels`]) need no value. Other arguments that neither the parameters nor
    /// the inputs name are errors, as are shapes and types that do not fit.
    pub fn new(
        engine: &'static Engine,
        symbol: Symbol,
        params: Params,
        inputs: PredictorInputs,
        context: Context,
        options: BuildOptions,
    ) -> Result<Predictor, OpError> {
        let declared: HashSet<&str> = inputs.shapes.iter().map(|(name, _)| name.as_str()).collect();
        let nodes = symbol.topo().len();
        let network = Network::bind(Site::new(engine, context, options), symbol, params, &declared)?;
        let model = Model { network, dtypes: inputs.dtypes, nodes };
        Predictor::of(Arc::new(model), inputs.shapes)
    }

    fn of(model: Arc<Model>, shapes: Vec<(String, Shape)>) -> Result<Predictor, OpError> {
        let network = &model.network;
        let known = known_inputs(network, &shapes)?;
        let seen: HashSet<&String> = known.keys().copied().collect();
        let known: Vec<(String, PartialShape)> = known.into_iter().map(|(name, shape)| (name.clone(), shape)).collect();
        let types = network.infer(&known, &model.input_dtypes())?;
        let inputs = network_inputs(network, &types, &seen, &|| lacking(network, &shapes))?;
        model.check_plan(&inputs)?;
        let unknown = || bad("the shapes and types of the outputs depend on the values of the inputs".to_owned());
        let outputs = types.outputs.iter().map(|output| output.complete().ok_or_else(unknown));
        let outputs = outputs.collect::<Result<_, _>>()?;
        let state = model.empty(&inputs)?;
        Ok(Predictor { model, shapes, inputs, outputs, state: Mutex::new(state) })
    }

    /// A predictor for other shapes. Inputs that are not named keep theirs.
    pub fn reshape(&self, shapes: Vec<(String, Shape)>) -> Result<Predictor, OpError> {
        let mut all = shapes;
        let given: HashSet<String> = all.iter().map(|(name, _)| name.clone()).collect();
        all.extend(self.shapes.iter().filter(|(name, _)| !given.contains(name)).cloned());
        Predictor::of(self.model.clone(), all)
    }

    /// Another predictor for the same shapes.
    pub fn another(&self) -> Result<Predictor, OpError> {
        Predictor::of(self.model.clone(), self.shapes.clone())
    }

    /// Type of an input that callers set, or of a label.
    pub fn input(&self, name: &str) -> Result<&TensorType, OpError> {
        self.place(name).map(|place| &self.inputs[place].tensor)
    }

    fn place(&self, name: &str) -> Result<usize, OpError> {
        let found = self.inputs.iter().position(|input| input.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.declared().map(|input| input.name.as_str()).collect();
            bad(format!("cannot find input key {name}: the inputs are {}", names.join(", ")))
        })
    }

    fn declared(&self) -> impl Iterator<Item = &PredictorInput> {
        self.inputs.iter().filter(|input| input.declared)
    }

    /// Sets an input: its elements, row-major, of the input's type.
    pub fn set_input(&self, name: &str, bytes: &[u8]) -> Result<(), OpError> {
        let place = self.place(name)?;
        let tensor = self.inputs[place].tensor.clone();
        let array = NDArray::from_bytes(self.model.network.engine, self.model.network.context, tensor, bytes)?;
        let before = self.state.lock().arrays[place].replace(array);
        drop(before);
        Ok(())
    }

    /// Types of the outputs.
    pub fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }

    /// Runs the model on the inputs as they are now. Returns before the outputs are computed; an
    /// input that was never set is an error.
    pub fn forward(&self) -> Result<(), OpError> {
        let (arrays, watcher) = self.ready()?;
        let refs: Vec<&NDArray> = arrays.iter().collect();
        let bound = &self.model.network.bound;
        let started = bound.call(&refs, None, &CallOptions::default(), &mut mxrt_graph::Interrupter::never())?;
        let made = started.arrays().map_err(crate::Error::from)?;
        let before = self.state.lock().outputs.replace(made.into_iter().collect());
        drop(before);
        let Some(watcher) = watcher else { return Ok(()) };
        let array_of = |name: &str| match self.inputs.iter().position(|input| input.name == name) {
            Some(place) => Some(arrays[place].clone()),
            None => self.model.network.params.get(name).cloned(),
        };
        watcher.watch.run(&array_of, &mut |name, array| (watcher.monitor)(name, array))
    }

    /// The arrays of the inputs; an error names those that are not set.
    fn ready(&self) -> Result<(Vec<NDArray>, Option<Watcher>), OpError> {
        let state = self.state.lock();
        let unset: Vec<&str> = self
            .inputs
            .iter()
            .zip(&state.arrays)
            .filter(|(_, array)| array.is_none())
            .map(|(input, _)| input.name.as_str())
            .collect();
        if !unset.is_empty() {
            return Err(bad(format!("the inputs {} are not set: set every input before the run", unset.join(", "))));
        }
        Ok((state.arrays.iter().flatten().cloned().collect(), state.watcher.clone()))
    }

    /// One step of a run, counted by the nodes of the symbol. Returns how many are left.
    ///
    /// The graph is compiled as a whole, so it runs with the last step: the results have the bits
    /// of [`Predictor::forward`]. Steps after the last do nothing.
    pub fn partial_forward(&self, step: i64) -> Result<usize, OpError> {
        let Some(step) = usize::try_from(step).ok().filter(|step| *step < self.model.nodes) else { return Ok(0) };
        let left = self.model.nodes - step - 1;
        if left == 0 {
            self.forward()?;
        } else {
            self.ready()?;
        }
        Ok(left)
    }

    /// One output of the last run. An error before the first.
    pub fn output(&self, index: usize) -> Result<NDArray, OpError> {
        self.check_output(index)?;
        let state = self.state.lock();
        match &state.outputs {
            Some(outputs) => Ok(outputs[index].clone()),
            None => {
                let names: Vec<&str> = self.declared().map(|input| input.name.as_str()).collect();
                let message =
                    format!("there is no output before a forward: set the inputs {} and run", names.join(", "));
                Err(bad(message))
            }
        }
    }

    /// The type of one output.
    pub fn check_output(&self, index: usize) -> Result<&TensorType, OpError> {
        self.outputs.get(index).ok_or_else(|| {
            bad(format!(
                "Output index out of range ({index} vs. {}): the model has that many outputs",
                self.outputs.len()
            ))
        })
    }

    /// Calls `monitor` with name and array of every operator's result at each run, with `all` also
    /// with those of operators' inputs; None ends that. The graph is then computed a second time,
    /// operator by operator.
    pub fn set_monitor(&self, monitor: Option<Arc<WatchCallback>>, all: bool) -> Result<(), OpError> {
        let network = &self.model.network;
        let watcher = match monitor {
            None => None,
            Some(monitor) => {
                let watch = Watch::new(network.engine, &network.symbol, network.options, all)?;
                Some(Watcher { watch: Arc::new(watch), monitor })
            }
        };
        let before = std::mem::replace(&mut self.state.lock().watcher, watcher);
        drop(before);
        Ok(())
    }
}

impl Model {
    /// Builds the plan, which checks everything that inference leaves open.
    fn check_plan(&self, inputs: &[PredictorInput]) -> Result<(), OpError> {
        let free = inputs.iter().map(|i| (i.name.as_str(), i.tensor.clone())).collect();
        self.network.bound.op().plan(&self.network.all_types(&free)).map(drop)
    }

    /// Types of all variables, as MXNet's predictor knows them: of the parameters, as given, or
    /// float32.
    fn input_dtypes(&self) -> Vec<(String, DType)> {
        let given: HashMap<&str, DType> = self.dtypes.iter().map(|(name, dtype)| (name.as_str(), *dtype)).collect();
        let of = |name: &String| match self.network.params.get(name) {
            Some(array) => array.dtype(),
            None => given.get(name.as_str()).copied().unwrap_or(DType::F32),
        };
        self.network.names.iter().map(|name| (name.clone(), of(name))).collect()
    }

    fn empty(&self, inputs: &[PredictorInput]) -> Result<State, OpError> {
        let arrays = inputs.iter().map(|input| match input.declared {
            true => Ok(None),
            false => NDArray::new(self.network.engine, self.network.context, input.tensor.clone()).map(Some),
        });
        Ok(State { arrays: arrays.collect::<Result<_, OpError>>()?, ..State::default() })
    }
}

impl std::fmt::Debug for Predictor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inputs: Vec<String> = self.declared().map(|i| format!("{} {}", i.name, i.tensor)).collect();
        write!(f, "Predictor({} -> {:?})", inputs.join(", "), self.outputs)
    }
}
