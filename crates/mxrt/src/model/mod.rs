//! [`Model`]: a network and its parameters, called by names of inputs from any thread.

mod builder;
mod engines;
mod input;
mod outputs;
mod pending;

pub use builder::ModelBuilder;
pub use input::Input;
pub use outputs::Outputs;
#[cfg(feature = "ndarray")]
pub use outputs::to_ndarray;
pub use pending::Pending;

use crate::network::{Network, PartialTensor};
use crate::plan::PlanReport;
use crate::trace::RequestSpan;
use crate::{CallOptions, Context, DType, Error, NDArray, Shape};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_engine::{ForkSafeMutex as Mutex, WrongInput};
use mxrt_graph::{Interrupter, Started};
use mxrt_tensor::{Element, PartialShape, TensorType};
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Name and type of an input or an output. What the model leaves open, such as the number of rows
/// of a batch, is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// name of the value
    pub name: String,
    /// shape of the value, as far as the parameters determine it
    pub shape: PartialShape,
    /// element type of the value, if the parameters determine it
    pub dtype: Option<DType>,
}

/// A trained model. `run` takes `&self`: one model answers any number of threads concurrently,
/// with inputs of any shapes. Clones are handles of the same model.
///
/// ```no_run
/// # fn main() -> Result<(), mxrt::Error> {
/// let model = mxrt::Model::load("resnet18", 0)?;
/// let image = vec![0.5f32; 3 * 224 * 224];
/// let y = model.run([("data", ([1, 3, 224, 224], &image))])?;
/// let scores: Vec<f32> = y[0].to_vec()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Model(Arc<Loaded>);

struct Loaded {
    network: Network,
    /// the arguments of the graph's calls, in order
    arguments: Vec<Argument>,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
    output_names: Arc<[String]>,
    name: String,
    labels: Mutex<VecDeque<(Arguments, Arguments)>>,
}

/// A variable that is no parameter.
struct Argument {
    name: String,
    /// position among the inputs. None for a label: zeros, unless a call passes it by its name,
    /// because it matters only in training
    input: Option<usize>,
}

impl Argument {
    fn is_label(&self) -> bool {
        self.input.is_none()
    }
}

type Arguments = Vec<Option<NDArray>>;

impl Model {
    /// Loads `PREFIX-symbol.json` and `PREFIX-EPOCH.params`, the epoch with four digits or more:
    /// what `net.export` and `mx.model.save_checkpoint` write.
    ///
    /// Models that are loaded so share one engine, with a thread for each core that the process may
    /// use, and no environment variable counts. [`Model::builder`] has other choices.
    ///
    /// # Errors
    /// Of kind `Data` for a file that cannot be opened or is damaged, `NotImplemented` for operators
    /// that do not exist (all are named), `Shape` where parameters do not fit the graph, `Value`
    /// where an auxiliary state is missing.
    pub fn load(prefix: impl AsRef<str>, epoch: u32) -> Result<Model, Error> {
        Model::builder().load(prefix, epoch)
    }

    /// Loads a model from the contents of its two files.
    pub fn load_bytes(symbol: impl AsRef<[u8]>, params: impl AsRef<[u8]>) -> Result<Model, Error> {
        Model::builder().load_bytes(symbol, params)
    }

    /// Choices of how a model runs.
    pub fn builder() -> ModelBuilder {
        ModelBuilder::default()
    }

    /// A model of a network. Its inputs are those of these names, else all variables without a
    /// parameter that are no labels.
    fn of(network: Network, named: Option<&[String]>) -> Result<Model, Error> {
        let states = network.symbol.list_auxiliary_states();
        if let Some(state) = states.iter().find(|name| !network.params.contains_key(*name)) {
            let message = format!("there is no parameter for the auxiliary state '{state}'");
            return Err(Error::new(FailureKind::Value, message));
        }
        let types = network.infer_with_parameters(&HashMap::new())?;
        let mut inputs: Vec<String> = named.unwrap_or_default().to_vec();
        for name in network.free().filter(|name| named.is_none() && !network.labels.contains(*name)) {
            if !inputs.contains(name) {
                inputs.push(name.clone());
            }
        }
        let place = |name: &String| inputs.iter().position(|input| input == name);
        let arguments: Vec<Argument> =
            network.free().map(|name| Argument { name: name.clone(), input: place(name) }).collect();
        let inputs: Vec<ValueInfo> =
            inputs.iter().filter_map(|name| Some(ValueInfo::new(name, types.variables.get(name)?))).collect();
        let output_names: Arc<[String]> = network.symbol.list_outputs().into();
        let outputs =
            output_names.iter().zip(&types.outputs).map(|(name, found)| ValueInfo::new(name, found)).collect();
        let name = network.symbol.name().or_else(|| output_names.first().cloned()).unwrap_or_default();
        let labels = Mutex::default();
        Ok(Model(Arc::new(Loaded { network, arguments, inputs, outputs, output_names, name, labels })))
    }

    /// The inputs of a call. Labels of training are left out: they need no value.
    pub fn inputs(&self) -> &[ValueInfo] {
        &self.0.inputs
    }

    /// The results of a call.
    pub fn outputs(&self) -> &[ValueInfo] {
        &self.0.outputs
    }

    /// The engine that runs the model, for other arrays and operators.
    #[doc(hidden)]
    pub fn engine(&self) -> &'static Engine {
        self.0.network.engine
    }

    /// The device that holds the parameters and runs calls.
    pub fn device(&self) -> Context {
        self.0.network.context
    }

    /// A parameter, by its name in the graph.
    pub fn parameter(&self, name: &str) -> Option<&NDArray> {
        self.0.network.params.get(name)
    }

    /// An array for this model, on its device: to be passed to several calls.
    pub fn array<T: Element>(&self, shape: impl Into<Shape>, values: &[T]) -> Result<NDArray, Error> {
        Ok(NDArray::from_slice(self.engine(), self.device(), shape, values)?)
    }

    /// Runs the model and waits for the results.
    ///
    /// Inputs are pairs of a name and an array: of an [`NDArray`], of a shape and a slice, or, with
    /// the feature `ndarray`, of an array of that crate. Inputs of different element types are
    /// converted with [`Input::from`]. The first call with new shapes builds a plan for them.
    ///
    /// # Errors
    /// Wrong names, missing inputs, shapes and element types: [`Error::input`], [`Error::got`] and
    /// [`Error::wanted`] say more. An operator that fails: [`Error::operator`], [`Error::node`].
    pub fn run<'a, N, V>(&self, inputs: impl IntoIterator<Item = (N, V)>) -> Result<Outputs, Error>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        self.run_with(inputs, &CallOptions::default())
    }

    /// Runs the model with a priority or a deadline.
    ///
    /// ```
    /// # use mxrt::{CallOptions, Model};
    /// # fn ask(model: &Model, image: &[f32]) -> Result<(), mxrt::Error> {
    /// let urgent = CallOptions::default().priority(1).within(std::time::Duration::from_millis(50));
    /// let y = model.run_with([("data", ([1, 1, 8, 8], image))], &urgent)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_with<'a, N, V>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
        options: &CallOptions,
    ) -> Result<Outputs, Error>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        let span = RequestSpan::new(&self.0.name);
        let done = span.within(|| {
            let arrays = self.gather(inputs)?;
            let started = self.start(&arrays, options)?;
            // What the call reads it holds itself.
            drop(arrays);
            Ok(self.name_outputs(started.wait()?))
        });
        span.end(&done);
        done
    }

    /// Begins to run the model. The result is a future, which needs no executor of a certain kind;
    /// it can also be waited for. Dropping it cancels the call, unless that has started.
    ///
    /// Plans that take less than some 0.2 ms run within this function, and so does building a plan
    /// for new shapes: [`Model::plan`] builds it beforehand.
    pub fn run_async<'a, N, V>(&self, inputs: impl IntoIterator<Item = (N, V)>) -> Result<Pending, Error>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        self.run_async_with(inputs, &CallOptions::default())
    }

    /// Starts a call with a priority or a deadline.
    pub fn run_async_with<'a, N, V>(
        &self,
        inputs: impl IntoIterator<Item = (N, V)>,
        options: &CallOptions,
    ) -> Result<Pending, Error>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        let options = CallOptions { cancel_on_drop: true, ..*options };
        let span = RequestSpan::new(&self.0.name);
        let begun = span.within(|| {
            let arrays = self.gather(inputs)?;
            self.start(&arrays, &options)
        });
        match begun {
            Ok(started) => Ok(Pending::new(self.clone(), started, span)),
            Err(error) => {
                let done = Err(error);
                span.end(&done);
                done
            }
        }
    }

    /// Begins to run the model on arrays for all [inputs](Model::inputs), in their order, and returns
    /// the results at once: they are computed in the background and waited for when they are read.
    /// With `outputs` the results go into these arrays.
    pub fn call(
        &self,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<Outputs, Error> {
        let Loaded { network, arguments, inputs: known, .. } = &*self.0;
        if inputs.len() != known.len() {
            let (takes, got, names) = (known.len(), inputs.len(), self.input_names());
            let message = format!("the model takes {takes} inputs ({names}), but {got} were given");
            return Err(Error::new(FailureKind::Value, message));
        }
        let mut labels = Arguments::new();
        if arguments.iter().any(Argument::is_label) {
            labels.extend(arguments.iter().map(|argument| Some(inputs[argument.input?].clone())));
            self.add_labels(&mut labels)?;
        }
        let array = |(place, argument): (usize, &Argument)| match argument.input {
            Some(input) => Some(inputs[input]),
            None => labels.get(place)?.as_ref(),
        };
        let data: SmallVec<[&NDArray; 4]> = arguments.iter().enumerate().filter_map(array).collect();
        let started = network.bound.call(&data, outputs, options, &mut Interrupter::never())?;
        Ok(self.name_outputs(started.arrays()?))
    }

    /// The plan for inputs of these shapes, as data and, by `to_string`, as text. Inputs have the
    /// element types that [`Model::inputs`] says, or float32. It is kept for later calls.
    pub fn plan<N, S>(&self, inputs: impl IntoIterator<Item = (N, S)>) -> Result<PlanReport, Error>
    where
        N: AsRef<str>,
        S: Into<Shape>,
    {
        let types = self.types_for(inputs)?;
        let network = &self.0.network;
        Ok(network.bound.op().plan(&network.all_types(&types))?)
    }

    /// The results of a call with inputs of these shapes. Shapes that depend on the contents of
    /// inputs stay unknown.
    pub fn outputs_for<N, S>(&self, inputs: impl IntoIterator<Item = (N, S)>) -> Result<Vec<ValueInfo>, Error>
    where
        N: AsRef<str>,
        S: Into<Shape>,
    {
        let found = self.0.network.infer_with_parameters(&self.types_for(inputs)?)?;
        let named = self.0.output_names.iter().zip(&found.outputs);
        Ok(named.map(|(name, found)| ValueInfo::new(name, found)).collect())
    }

    /// Types of all inputs, which have these shapes, and of labels.
    fn types_for<N, S>(&self, inputs: impl IntoIterator<Item = (N, S)>) -> Result<HashMap<&str, TensorType>, Error>
    where
        N: AsRef<str>,
        S: Into<Shape>,
    {
        let mut types = HashMap::new();
        for (name, shape) in inputs {
            let info = self.0.inputs.iter().find(|info| info.name == name.as_ref());
            let info = info.ok_or_else(|| self.unknown_input(name.as_ref()))?;
            types.insert(info.name.as_str(), TensorType::new(info.dtype.unwrap_or(DType::F32), shape));
        }
        if let Some(missing) = self.0.inputs.iter().find(|info| !types.contains_key(info.name.as_str())) {
            return Err(self.missing_input(&missing.name).into());
        }
        self.label_types(&mut types)?;
        Ok(types)
    }

    fn name_outputs(&self, arrays: SmallVec<[NDArray; 2]>) -> Outputs {
        Outputs::new(arrays, self.0.output_names.clone())
    }

    // ---- arguments ------------------------------------------------------------------------------

    /// The arrays of a call in the order of the graph.
    fn gather<'a, N, V>(&self, inputs: impl IntoIterator<Item = (N, V)>) -> Result<SmallVec<[NDArray; 4]>, Error>
    where
        N: AsRef<str>,
        V: Into<Input<'a>>,
    {
        let Loaded { network, arguments, .. } = &*self.0;
        let mut arrays: Arguments = vec![None; arguments.len()];
        for (name, input) in inputs {
            let name = name.as_ref();
            let mut places = (0..arguments.len()).filter(|i| arguments[*i].name == name).peekable();
            let first = *places.peek().ok_or_else(|| self.unknown_input(name))?;
            if arrays[first].is_some() {
                return Err(Error::new(FailureKind::Value, format!("the input '{name}' is given twice")));
            }
            let array =
                input.into().into_array(network.engine, network.context).map_err(|error| of_input(error, name))?;
            places.for_each(|place| arrays[place] = Some(array.clone()));
        }
        if arrays.iter().any(Option::is_none) {
            self.add_labels(&mut arrays)?;
        }
        Ok(arrays.into_iter().flatten().collect())
    }

    /// Zeros for the labels that a call leaves out.
    fn add_labels(&self, arrays: &mut Arguments) -> Result<(), Error> {
        let Loaded { network, arguments, labels, .. } = &*self.0;
        let absent = |i: &usize| arrays[*i].is_none();
        if let Some(missing) = (0..arguments.len()).filter(absent).find(|i| !arguments[*i].is_label()) {
            return Err(self.missing_input(&arguments[missing].name).into());
        }
        let same = |(asked, _): &&(Arguments, Arguments)| {
            let types = |a: &Option<NDArray>| a.as_ref().map(NDArray::tensor_type);
            asked.iter().zip(arrays.iter()).all(|(a, b)| types(a) == types(b))
        };
        let known = labels.lock().iter().find(same).map(|(_, made)| made.clone());
        let made = match known {
            Some(made) => made,
            None => {
                let given = arguments.iter().zip(arrays.iter());
                let mut types: HashMap<&str, TensorType> =
                    given.filter_map(|(a, array)| Some((a.name.as_str(), array.as_ref()?.tensor_type()))).collect();
                self.label_types(&mut types)?;
                let zeros = |(argument, array): (&Argument, &Option<NDArray>)| match array {
                    Some(_) => Ok(None),
                    None => {
                        let tensor = types[argument.name.as_str()].clone();
                        NDArray::new(network.engine, network.context, tensor).map(Some)
                    }
                };
                let made = arguments.iter().zip(arrays.iter()).map(zeros).collect::<Result<Arguments, OpError>>()?;
                // The types of the question are all that counts of its arrays.
                let asked = arrays.iter().map(|a| a.as_ref().map(placeholder).transpose()).collect::<Result<_, _>>()?;
                let mut labels = labels.lock();
                labels.truncate(REMEMBERED - 1);
                labels.push_front((asked, made.clone()));
                made
            }
        };
        arrays.iter_mut().zip(made).for_each(|(array, made)| *array = array.take().or(made));
        Ok(())
    }

    /// Adds the types of labels that are not there.
    fn label_types<'n>(&'n self, types: &mut HashMap<&'n str, TensorType>) -> Result<(), Error> {
        let Loaded { network, arguments, .. } = &*self.0;
        let mut open = arguments.iter().filter(|a| a.is_label() && !types.contains_key(a.name.as_str())).peekable();
        if open.peek().is_none() {
            return Ok(());
        }
        let found = network.infer_with_parameters(types)?;
        let mut made = Vec::new();
        for label in open {
            let shape = found.variables.get(&label.name).and_then(|found| found.shape.complete());
            let Some(shape) = shape else { return Err(self.missing_input(&label.name).into()) };
            made.push((label.name.as_str(), TensorType { dtype: DType::F32, shape }));
        }
        types.extend(made);
        Ok(())
    }

    fn input_names(&self) -> String {
        let names: Vec<&str> = self.0.inputs.iter().map(|info| info.name.as_str()).collect();
        names.join(", ")
    }

    fn unknown_input(&self, name: &str) -> Error {
        let message = match self.0.network.params.contains_key(name) {
            true => format!("'{name}' is a parameter of the model; its inputs are {}", self.input_names()),
            false => format!("the model has no input '{name}'; its inputs are {}", self.input_names()),
        };
        let wrong = WrongInput { name: name.to_owned(), got: None, wanted: None };
        OpError::new(FailureKind::Value, message).input(wrong).into()
    }

    fn missing_input(&self, name: &str) -> OpError {
        let info = self.0.inputs.iter().find(|info| info.name == name);
        let wanted = info.map(|info| info.type_text());
        let message = format!(
            "the input '{name}' is missing: neither the call nor the file of parameters has it; the inputs are {}",
            self.input_names()
        );
        OpError::new(FailureKind::Value, message).input(WrongInput { name: name.to_owned(), got: None, wanted })
    }

    // ---- calls ----------------------------------------------------------------------------------

    fn start(&self, arrays: &[NDArray], options: &CallOptions) -> Result<Started, Error> {
        let arrays: SmallVec<[&NDArray; 4]> = arrays.iter().collect();
        Ok(self.0.network.bound.call(&arrays, None, options, &mut Interrupter::never())?)
    }
}

/// Signatures for which zeros are kept in place of labels.
const REMEMBERED: usize = 16;

/// An array of the same type without content: its memory is made when it is first touched.
fn placeholder(array: &NDArray) -> Result<NDArray, OpError> {
    NDArray::new(array.engine(), array.context(), array.tensor_type())
}

/// Says which input an error is about.
fn of_input(mut error: OpError, name: &str) -> OpError {
    error.message = format!("input '{name}': {}", error.message);
    error.input.get_or_insert_with(|| WrongInput { name: String::new(), got: None, wanted: None }).name =
        name.to_owned();
    error
}

impl ValueInfo {
    fn new(name: &str, found: &PartialTensor) -> ValueInfo {
        ValueInfo { name: name.to_owned(), shape: found.shape.clone(), dtype: found.dtype }
    }

    /// Formats the type: `float32(?, 64)`.
    fn type_text(&self) -> String {
        let dtype = self.dtype.map_or("any type", DType::name);
        match self.shape.rank() {
            Some(_) => format!("{dtype}{}", self.shape),
            None => format!("{dtype} of any shape"),
        }
    }
}

impl std::fmt::Display for ValueInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.type_text())
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |values: &[ValueInfo]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "Model({} -> {})", list(self.inputs()), list(self.outputs()))
    }
}
