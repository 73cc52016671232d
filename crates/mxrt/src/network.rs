//! [`Network`]: a graph with its parameters, which models and predictors run.

use crate::params::Params;
use crate::{Context, DType, NDArray, Symbol};
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BoundOp, BuildOptions, CachedOp, CachedOpFlags};
use mxrt_ops::RandomState;
use mxrt_tensor::{PartialShape, TensorType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A graph with its parameters on one device.
pub(crate) struct Network {
    pub engine: &'static Engine,
    pub symbol: Symbol,
    pub options: BuildOptions,
    pub context: Context,
    pub params: HashMap<String, NDArray>,
    pub bound: BoundOp,
    /// names of all variables
    pub names: Vec<String>,
    /// names of those that matter only in training
    pub labels: HashSet<String>,
}

/// The known types of a network's values.
pub(crate) struct NetworkTypes {
    /// types by name of a variable
    pub variables: HashMap<String, PartialTensor>,
    /// types of the outputs
    pub outputs: Vec<PartialTensor>,
}

/// A type of which parts may be unknown.
#[derive(Clone)]
pub(crate) struct PartialTensor {
    pub shape: PartialShape,
    pub dtype: Option<DType>,
}

impl PartialTensor {
    /// The whole type, if all of it is known.
    pub fn complete(&self) -> Option<TensorType> {
        Some(TensorType { shape: self.shape.complete()?, dtype: self.dtype? })
    }
}

/// The device on which a network runs, and how it is compiled.
pub(crate) struct Site {
    pub engine: &'static Engine,
    pub context: Context,
    pub options: BuildOptions,
    /// flags of the `CachedOp`
    pub flags: Vec<(String, String)>,
    /// stream of random operators; without it the network has one of its own
    pub random: Option<Arc<RandomState>>,
}

impl Site {
    pub fn new(engine: &'static Engine, context: Context, options: BuildOptions) -> Site {
        Site { engine, context, options, flags: Vec::new(), random: None }
    }
}

/// The arrays of a symbol's variables that are not `given`, by their names without `arg:` and `aux:`,
/// on a device.
fn params_of(
    symbol: &Symbol,
    named: Vec<(String, NDArray)>,
    given: &HashSet<&str>,
    context: Context,
) -> Result<HashMap<String, NDArray>, OpError> {
    let (arguments, states) = (symbol.list_arguments(), symbol.list_auxiliary_states());
    let (arguments, states): (HashSet<&str>, HashSet<&str>) =
        (arguments.iter().map(String::as_str).collect(), states.iter().map(String::as_str).collect());
    let mut params = HashMap::new();
    for (name, array) in named {
        let found = match name.split_once(':') {
            Some(("arg", name)) => arguments.get(name),
            Some(("aux", name)) => states.get(name),
            _ => arguments.get(name.as_str()).or_else(|| states.get(name.as_str())),
        };
        if let Some(name) = found.filter(|name| !given.contains(*name)) {
            let here = if array.context() == context { array } else { array.copy_to_context(context)? };
            params.insert((*name).to_owned(), here);
        }
    }
    Ok(params)
}

impl Network {
    /// Binds a symbol to its parameters, named as in files (`arg:weight`, `aux:mean`) or plainly.
    /// Those named `given` are arguments of calls.
    pub fn bind(site: Site, symbol: Symbol, params: Params, given: &HashSet<&str>) -> Result<Network, OpError> {
        let Site { engine, context, options, flags, random } = site;
        let named = match params {
            Params::Named(named) => named,
            // The file of a network without parameters.
            Params::List(arrays) if arrays.is_empty() => Vec::new(),
            Params::List(_) => {
                let message = "the parameters have no names: Invalid param file format".to_owned();
                return Err(OpError::new(FailureKind::Value, message));
            }
        };
        let params = params_of(&symbol, named, given, context)?;
        let names = symbol.list_inputs();
        let (of_data, of_params): (Vec<usize>, Vec<usize>) =
            (0..names.len()).partition(|i| !params.contains_key(&names[*i]));
        let (data_indices, param_indices) = (tuple(&of_data), tuple(&of_params));
        let known = [("data_indices", data_indices.as_str()), ("param_indices", param_indices.as_str())];
        let flags = flags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut op = CachedOp::compile(engine, &symbol, &CachedOpFlags::parse(flags.chain(known))?, options)?;
        if let Some(random) = random {
            op = op.with_random(random);
        }
        let arrays: Vec<Option<&NDArray>> = names.iter().map(|name| params.get(name)).collect();
        let bound = BoundOp::new(Arc::new(op), &arrays)?;
        let labels = symbol.labels();
        Ok(Network { engine, symbol, options, context, params, bound, names, labels })
    }

    /// Names of the variables that are no parameters, in the order in which calls take them.
    pub fn free(&self) -> impl Iterator<Item = &String> {
        self.names.iter().filter(|name| !self.params.contains_key(*name))
    }

    /// Infers types from these.
    pub fn infer(
        &self,
        shapes: &[(String, PartialShape)],
        dtypes: &[(String, DType)],
    ) -> Result<NetworkTypes, OpError> {
        let shapes = self.symbol.infer_shape(&self.symbol.with_label_shapes(shapes.to_vec())?, true)?;
        let dtypes = self.symbol.infer_type(dtypes, true)?;
        let names = self.symbol.list_arguments().into_iter().chain(self.symbol.list_auxiliary_states());
        let known = shapes.args.into_iter().chain(shapes.aux).zip(dtypes.args.into_iter().chain(dtypes.aux));
        let partial = |(shape, dtype)| PartialTensor { shape, dtype };
        Ok(NetworkTypes {
            variables: names.zip(known.map(partial)).collect(),
            outputs: shapes.outs.into_iter().zip(dtypes.outs).map(partial).collect(),
        })
    }

    /// Infers types from those of the parameters and of these other variables.
    pub fn infer_with_parameters(&self, free: &HashMap<&str, TensorType>) -> Result<NetworkTypes, OpError> {
        let of_params = self.params.iter().map(|(name, array)| (name.as_str(), array.tensor_type()));
        let given = free.iter().map(|(name, tensor)| (*name, tensor.clone()));
        let known: Vec<(&str, TensorType)> = of_params.chain(given).collect();
        let shapes: Vec<_> = known.iter().map(|(name, tensor)| ((*name).to_owned(), (&tensor.shape).into())).collect();
        let dtypes: Vec<_> = known.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.dtype)).collect();
        self.infer(&shapes, &dtypes)
    }

    /// Types of all variables, of which these are no parameters.
    pub fn all_types(&self, free: &HashMap<&str, TensorType>) -> Vec<TensorType> {
        let of = |name: &String| match (free.get(name.as_str()), self.params.get(name)) {
            (Some(tensor), _) => tensor.clone(),
            (None, Some(array)) => array.tensor_type(),
            (None, None) => TensorType::new(DType::F32, &[][..]),
        };
        self.names.iter().map(of).collect()
    }
}

fn tuple(positions: &[usize]) -> String {
    let numbers: String = positions.iter().map(|position| format!("{position},")).collect();
    format!("({numbers})")
}
