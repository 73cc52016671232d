//! [`Executor`]: a symbol together with the arrays of its variables and outputs.

use super::bound_op::BoundOp;
use super::cached_op::CachedOp;
use super::call_options::CallOptions;
use super::watch::Watch;
use crate::compile::flags::CachedOpFlags;
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::symbol::{Symbol, TrainingScope};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_ops::RandomState;
use mxrt_tensor::{Context, DType, NDArray, PartialShape, Shape, TensorType};
use std::collections::HashMap;
use std::sync::Arc;

/// A function that finds an existing array for a variable.
type Find<'a> = dyn Fn(&str, &TensorType) -> Result<Option<NDArray>, OpError> + 'a;

/// A function that is called with name and array of a result.
pub type WatchCallback = dyn Fn(&str, &NDArray) + Send + Sync;

/// Environment of executors: the engine, options and random stream that all executors of a process
/// share.
#[derive(Clone)]
pub struct ExecutorSite {
    /// engine that runs the calls
    pub engine: &'static Engine,
    /// options for their plans
    pub options: BuildOptions,
    /// stream of random operators
    pub random: Arc<RandomState>,
}

/// Permitted changes when an executor is made for other shapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reshaping {
    /// whether arrays whose shapes are not named may change shape
    pub partial: bool,
    /// whether arrays may become larger, in new memory
    pub grow: bool,
}

/// Arrays that a new executor takes from another one instead of making them.
#[derive(Clone, Copy, Debug)]
pub struct SharedArrays<'a> {
    /// executor that has the arrays
    pub executor: &'a Executor,
    /// names of the arguments that are shared; all auxiliary states are
    pub arguments: &'a [&'a str],
}

impl SharedArrays<'_> {
    /// The array for an argument of the new executor; `None` for one that is not shared.
    fn argument(&self, name: &str, tensor: &TensorType) -> Result<Option<NDArray>, OpError> {
        if !self.arguments.contains(&name) {
            return Ok(None);
        }
        shared(&self.executor.arguments, "argument", name, tensor).map(Some)
    }

    /// The array for an auxiliary state of the new executor.
    fn state(&self, name: &str, tensor: &TensorType) -> Result<Option<NDArray>, OpError> {
        shared(&self.executor.states, "auxiliary state", name, tensor).map(Some)
    }
}

/// Finds an array of an executor that another one shares.
fn shared(held: &[(String, NDArray)], what: &str, name: &str, tensor: &TensorType) -> Result<NDArray, OpError> {
    let Some((_, array)) = held.iter().find(|(held, _)| held == name) else {
        let names: Vec<&str> = held.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!("the shared executor has no {what} '{name}'; it has: {}", names.join(", "));
        return Err(fail(FailureKind::Value, message));
    };
    let found = array.tensor_type();
    if found == *tensor {
        return Ok(array.clone());
    }
    let kind = if found.shape == tensor.shape { FailureKind::Type } else { FailureKind::Shape };
    let message = format!("the {what} '{name}' of the shared executor is {found}, and {tensor} is needed");
    Err(fail(kind, message))
}

/// A symbol bound to arrays. Each run writes its results to the same output arrays.
pub struct Executor {
    site: ExecutorSite,
    context: Context,
    symbol: Symbol,
    op: Arc<CachedOp>,
    bound: Arc<BoundOp>,
    /// the graph for each scope of training that was asked for
    training: Mutex<HashMap<TrainingScope, Arc<BoundOp>>>,
    arguments: Vec<(String, NDArray)>,
    states: Vec<(String, NDArray)>,
    outputs: Vec<NDArray>,
    monitor: Mutex<Option<Arc<Monitor>>>,
}

/// A callback of an executor, and the graphs that it has been told of.
struct Monitor {
    callback: Arc<WatchCallback>,
    /// whether it hears the inputs of operators too
    all: bool,
    watches: Mutex<HashMap<TrainingScope, Arc<Watch>>>,
}

impl Monitor {
    /// The watch over what an executor computes as in training.
    fn watch(&self, executor: &Executor, training: TrainingScope) -> Result<Arc<Watch>, OpError> {
        if let Some(made) = self.watches.lock().get(&training) {
            return Ok(made.clone());
        }
        let site = &executor.site;
        let form = executor.symbol.in_training(training)?;
        let symbol = form.as_ref().unwrap_or(&executor.symbol);
        let made = Watch::new(site.engine, symbol, site.options, self.all)?.with_random(site.random.clone());
        Ok(self.watches.lock().entry(training).or_insert(Arc::new(made)).clone())
    }
}

/// Returns an error that names the variables whose shapes are not known.
fn check_complete(names: &[String], shapes: &[PartialShape]) -> Result<(), OpError> {
    let unknown = names.iter().zip(shapes).filter(|(_, shape)| !shape.is_complete());
    let unknown: Vec<String> = unknown.map(|(name, shape)| format!("{name}: {shape}")).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let message = format!(
        "simple_bind cannot decide shapes for the following arguments: give them as inputs: {}",
        unknown.join(", ")
    );
    Err(fail(FailureKind::Shape, message))
}

fn fail(kind: FailureKind, message: String) -> OpError {
    OpError::new(kind, message).op("Executor")
}

fn named(names: Vec<String>, arrays: Vec<NDArray>, what: &str) -> Result<Vec<(String, NDArray)>, OpError> {
    if names.len() == arrays.len() {
        return Ok(names.into_iter().zip(arrays).collect());
    }
    let message = format!("{} {what} were given, {} are needed: {}", arrays.len(), names.len(), names.join(", "));
    Err(fail(FailureKind::Value, message))
}

/// Rows whose names are variables of the symbol.
fn of_inputs<T: Clone>(symbol: &Symbol, given: &[(String, T)]) -> Vec<(String, T)> {
    let inputs = symbol.list_inputs();
    given.iter().filter(|(name, _)| inputs.contains(name)).cloned().collect()
}

/// The graph of a symbol with arrays for all of its variables.
fn bound(
    op: Arc<CachedOp>,
    symbol: &Symbol,
    arguments: &[(String, NDArray)],
    states: &[(String, NDArray)],
) -> Result<BoundOp, OpError> {
    let all = arguments.iter().chain(states);
    let of_name: HashMap<&str, &NDArray> = all.map(|(name, array)| (name.as_str(), array)).collect();
    let held: Vec<Option<&NDArray>> =
        symbol.list_inputs().iter().map(|name| of_name.get(name.as_str()).copied()).collect();
    BoundOp::new(op, &held)
}

impl Executor {
    /// Binds a symbol to arrays, in the orders of `list_arguments` and `list_auxiliary_states`.
    pub fn bind(
        site: ExecutorSite,
        symbol: Symbol,
        context: Context,
        arguments: Vec<NDArray>,
        states: Vec<NDArray>,
    ) -> Result<Executor, OpError> {
        let op = CachedOp::compile(site.engine, &symbol, &CachedOpFlags::default(), site.options)?;
        let op = Arc::new(op.with_random(site.random.clone()));
        Executor::with_op(site, symbol, op, context, arguments, states)
    }

    fn with_op(
        site: ExecutorSite,
        symbol: Symbol,
        op: Arc<CachedOp>,
        context: Context,
        arguments: Vec<NDArray>,
        states: Vec<NDArray>,
    ) -> Result<Executor, OpError> {
        let arguments = named(symbol.list_arguments(), arguments, "arguments")?;
        let states = named(symbol.list_auxiliary_states(), states, "auxiliary states")?;
        let all = || arguments.iter().chain(&states);
        let shapes: Vec<_> = all()
            .map(|(name, array)| (name.clone(), PartialShape::from_dims(array.shape().iter().copied().map(Some))))
            .collect();
        let types: Vec<_> = all().map(|(name, array)| (name.clone(), array.dtype())).collect();
        let shapes = symbol.infer_shape(&shapes, false)?.outs;
        let types = symbol.infer_type(&types, false)?.outs;
        let outputs = shapes.iter().zip(types).zip(symbol.list_outputs()).map(|((shape, dtype), name)| {
            let (Some(shape), Some(dtype)) = (shape.complete(), dtype) else {
                let message = format!("shape or type of the output '{name}' depends on values");
                return Err(fail(FailureKind::Shape, message));
            };
            NDArray::new(site.engine, context, TensorType { dtype, shape })
        });
        let outputs = outputs.collect::<Result<Vec<NDArray>, OpError>>()?;
        let bound = Arc::new(bound(op.clone(), &symbol, &arguments, &states)?);
        let (training, monitor) = (Mutex::default(), Mutex::default());
        Ok(Executor { site, context, symbol, op, bound, training, arguments, states, outputs, monitor })
    }

    /// Binds a symbol to new arrays of zeros, whose shapes and types follow from those of some
    /// variables. Names that the symbol lacks count for nothing, as in MXNet: programs name the label
    /// of any network. Arrays that are `shared` must have the shapes and types that the graph needs.
    pub fn simple_bind(
        site: ExecutorSite,
        symbol: Symbol,
        context: Context,
        shapes: &[(String, PartialShape)],
        types: &[(String, DType)],
        shared: Option<SharedArrays<'_>>,
    ) -> Result<Executor, OpError> {
        let shapes = symbol.infer_shape(&of_inputs(&symbol, shapes), true)?;
        let types = symbol.infer_type(&of_inputs(&symbol, types), true)?;
        let make = |names: Vec<String>, shapes: &[PartialShape], types: &[Option<DType>], find: &Find<'_>| {
            check_complete(&names, shapes)?;
            let rows = names.iter().zip(shapes).zip(types);
            rows.map(|((name, shape), dtype)| {
                let tensor =
                    TensorType { dtype: dtype.unwrap_or(DType::F32), shape: shape.complete().unwrap_or_default() };
                match find(name, &tensor)? {
                    Some(array) => Ok(array),
                    None => NDArray::new(site.engine, context, tensor),
                }
            })
            .collect::<Result<Vec<NDArray>, OpError>>()
        };
        let argument = |name: &str, tensor: &TensorType| shared.map_or(Ok(None), |all| all.argument(name, tensor));
        let state = |name: &str, tensor: &TensorType| shared.map_or(Ok(None), |all| all.state(name, tensor));
        let arguments = make(symbol.list_arguments(), &shapes.args, &types.args, &argument)?;
        let states = make(symbol.list_auxiliary_states(), &shapes.aux, &types.aux, &state)?;
        Executor::bind(site, symbol, context, arguments, states)
    }

    /// Makes an executor for other shapes of some arguments. It shares the memory of all arrays
    /// that do not grow. Names that the symbol lacks count for nothing.
    pub fn reshape(&self, shapes: &[(String, PartialShape)], how: Reshaping) -> Result<Executor, OpError> {
        let found = self.symbol.infer_shape(&of_inputs(&self.symbol, shapes), false)?;
        let resize = |(name, array): &(String, NDArray), shape: &PartialShape| {
            let Some(shape) = shape.complete() else {
                let message = format!("the shapes are not enough to get the shape of '{name}'");
                return Err(fail(FailureKind::Shape, message));
            };
            let may_change = how.partial || shapes.iter().any(|(given, _)| given == name);
            self.resized(name, array, shape, may_change, how.grow)
        };
        let arguments = self.arguments.iter().zip(&found.args).map(|(held, shape)| resize(held, shape));
        let arguments = arguments.collect::<Result<Vec<NDArray>, OpError>>()?;
        let states = self.states.iter().zip(&found.aux).map(|(held, shape)| resize(held, shape));
        let states = states.collect::<Result<Vec<NDArray>, OpError>>()?;
        Executor::with_op(self.site.clone(), self.symbol.clone(), self.op.clone(), self.context, arguments, states)
    }

    fn resized(
        &self,
        name: &str,
        array: &NDArray,
        shape: Shape,
        may_change: bool,
        may_grow: bool,
    ) -> Result<NDArray, OpError> {
        if array.shape() == &shape {
            return Ok(array.clone());
        }
        if !may_change {
            let message = format!(
                "the shape of '{name}', which is not named, changes from {} to {shape}: set partial_shaping if this \
                 is intended",
                array.shape()
            );
            return Err(fail(FailureKind::Shape, message));
        }
        if let Some(view) = array.view(0, shape.clone()) {
            return Ok(view);
        }
        if !may_grow {
            let message = format!(
                "the new shape {shape} of '{name}' is larger than the original {}: set allow_up_sizing",
                array.shape()
            );
            return Err(fail(FailureKind::Shape, message));
        }
        NDArray::new(self.site.engine, self.context, TensorType { dtype: array.dtype(), shape })
    }

    /// Runs the graph on the present content of the arrays, with what `training` names as in
    /// training. Returns before the outputs are computed. A monitor hears what became the outputs:
    /// where there is one, the graph runs operator by operator.
    pub fn forward(&self, training: TrainingScope) -> Result<(), OpError> {
        let outputs: Vec<&NDArray> = self.outputs.iter().collect();
        let monitor = self.monitor.lock().clone();
        let Some(monitor) = monitor else {
            let bound = self.bound_for(training)?;
            return bound.call(&[], Some(&outputs), &CallOptions::default(), &mut Interrupter::never()).map(drop);
        };
        let held = || self.arguments.iter().chain(&self.states);
        let array_of = |name: &str| held().find(|(held, _)| held == name).map(|(_, array)| array.clone());
        let watch = monitor.watch(self, training)?;
        let watched = watch.compute(&array_of)?;
        watched.store(&outputs)?;
        watched.show(&mut |name, array| (monitor.callback)(name, array));
        Ok(())
    }

    fn bound_for(&self, training: TrainingScope) -> Result<Arc<BoundOp>, OpError> {
        if training == TrainingScope::NOTHING {
            return Ok(self.bound.clone());
        }
        if let Some(made) = self.training.lock().get(&training) {
            return Ok(made.clone());
        }
        let made = match self.symbol.in_training(training)? {
            None => self.bound.clone(),
            Some(form) => {
                let op = CachedOp::compile(self.site.engine, &form, &CachedOpFlags::default(), self.site.options)?;
                let op = Arc::new(op.with_random(self.site.random.clone()));
                Arc::new(bound(op, &form, &self.arguments, &self.states)?)
            }
        };
        Ok(self.training.lock().entry(training).or_insert(made).clone())
    }

    /// Calls `callback` with name and array of every operator's result at each run, and with `all`
    /// also with those of operators' inputs. `None` ends this. While it is active, the graph is
    /// computed operator by operator.
    pub fn watch(&self, callback: Option<Arc<WatchCallback>>, all: bool) {
        let monitor = callback.map(|callback| Arc::new(Monitor { callback, all, watches: Mutex::default() }));
        let before = std::mem::replace(&mut *self.monitor.lock(), monitor);
        drop(before);
    }

    /// Names and arrays of the arguments.
    pub fn arguments(&self) -> &[(String, NDArray)] {
        &self.arguments
    }

    /// Names and arrays of the auxiliary states.
    pub fn states(&self) -> &[(String, NDArray)] {
        &self.states
    }

    /// The outputs, which every run overwrites. They are zeros before the first run.
    pub fn outputs(&self) -> &[NDArray] {
        &self.outputs
    }

    /// The symbol.
    pub fn symbol(&self) -> &Symbol {
        &self.symbol
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Executor({:?} on {})", self.symbol, self.context)
    }
}
