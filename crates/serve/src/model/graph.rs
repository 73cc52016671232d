//! Graph of a model: which of its arguments are parameters, inputs and labels.

use super::{GraphArgument, bad, listed, notes};
use crate::settings::ModelSettings;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BoundOp, BuildOptions, CachedOp, CachedOpFlags, Symbol};
use mxrt_io::model_files::ModelFiles;
use mxrt_tensor::{NDArray, TensorType};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Endings of names of parameters, by MXNet's convention.
const PARAMETER_ENDINGS: [&str; 7] = ["weight", "bias", "gamma", "beta", "mean", "var", "parameters"];
/// Symbol and parameters of a model, with its settings.
pub(super) struct ModelGraph {
    pub(super) symbol: Symbol,
    /// parameters by name
    pub(super) params: HashMap<String, NDArray>,
    /// settings with the shapes that the files give
    pub(super) settings: ModelSettings,
    /// names of all arguments, in the order of the graph
    names: Vec<String>,
    /// arguments that are labels where no shape is given for them
    known_labels: HashSet<String>,
}

/// Arguments that are no parameters.
pub(super) struct FreeArguments {
    pub(super) inputs: Vec<String>,
    pub(super) labels: Vec<String>,
    /// kind of each, with its number among those of its kind
    pub(super) arguments: Vec<GraphArgument>,
}

/// Names a file without its folder: clients may load models, and need no names of folders.
fn file_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl ModelGraph {
    /// Adds the shapes that the files give to the settings. An argument with a shape is an input
    /// although there is a parameter of its name.
    pub(super) fn new(
        symbol: Symbol,
        mut params: HashMap<String, NDArray>,
        mut settings: ModelSettings,
        files: &ModelFiles,
    ) -> Result<ModelGraph, OpError> {
        let (names, known_labels) = (symbol.list_inputs(), symbol.labels());
        let lone = settings.name_lone_input(&names, &params, &known_labels);
        for (name, shape) in notes::shapes(&files.symbol).map_err(bad)? {
            if names.contains(&name) && !settings.shapes.iter().any(|(said, _)| *said == name) {
                settings.shapes.push((name, shape));
            }
        }
        params.retain(|name, _| !settings.shapes.iter().any(|(declared, _)| declared == name));
        let graph = ModelGraph { symbol, params, settings, names, known_labels };
        graph.check_parameters(files)?;
        graph.check_values(files)?;
        lone.map(|()| graph)
    }

    /// Fails for a value without a parameter.
    fn check_values(&self, files: &ModelFiles) -> Result<(), OpError> {
        let mut foreign: Vec<&String> = self.params.keys().filter(|name| !self.names.contains(name)).collect();
        foreign.sort();
        if foreign.is_empty() {
            return Ok(());
        }
        Err(bad(format!(
            "'{}' has values for {}, which the symbol has not: it may be the file of another model",
            file_name(files.params.as_deref().unwrap_or(&files.symbol)),
            listed(&foreign)
        )))
    }

    /// Fails for a parameter without a value.
    fn check_parameters(&self, files: &ModelFiles) -> Result<(), OpError> {
        let states: HashSet<String> = self.symbol.list_auxiliary_states().into_iter().collect();
        let is_parameter = |name: &str| {
            states.contains(name) || (!self.has_shape(name) && PARAMETER_ENDINGS.iter().any(|e| name.ends_with(e)))
        };
        let lacking: Vec<&String> = self.free().into_iter().filter(|name| is_parameter(name)).collect();
        match (&files.params, lacking.first()) {
            (_, None) => Ok(()),
            (None, Some(first)) => Err(OpError::new(
                FailureKind::FileNotFound,
                format!(
                    "no parameter file was found for '{}': put one next to it, or name it with `params`; an input \
                     '{first}' needs a shape",
                    file_name(&files.symbol)
                ),
            )),
            (Some(params), Some(first)) => Err(bad(format!(
                "'{}' has no value for the parameters {} of the symbol: it may be the file of another model; an input \
                 '{first}' needs a shape",
                file_name(params),
                listed(&lacking)
            ))),
        }
    }

    /// Returns the arguments that are no parameters, in the order of the graph.
    pub(super) fn free(&self) -> Vec<&String> {
        self.names.iter().filter(|name| !self.params.contains_key(*name)).collect()
    }

    fn has_shape(&self, name: &str) -> bool {
        self.settings.shapes.iter().any(|(declared, _)| declared == name)
    }

    /// Tells inputs from labels. Fails for a setting of an input that is none.
    pub(super) fn arguments(&self) -> Result<FreeArguments, OpError> {
        let (free, settings) = (self.free(), &self.settings);
        let typed = settings.dtypes.iter().map(|(name, _)| ("dtypes", name.as_str()));
        let mut said = settings.shapes.iter().map(|(name, _)| ("shapes", name.as_str())).chain(typed);
        if let Some((key, unknown)) = said.find(|(_, name)| !free.iter().any(|free| free == name)) {
            return Err(bad(format!("{key}: there is no input '{unknown}'; the inputs are {}", listed(&free))));
        }
        let (mut inputs, mut labels, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        for name in free {
            if self.known_labels.contains(name) && !self.has_shape(name) {
                arguments.push(GraphArgument::Label(labels.len()));
                labels.push(name.clone());
            } else {
                arguments.push(GraphArgument::Input(inputs.len()));
                inputs.push(name.clone());
            }
        }
        Ok(FreeArguments { inputs, labels, arguments })
    }

    /// Compiles the graph and binds the parameters. Also returns the types of these, by argument.
    pub(super) fn compile(
        &self,
        engine: &'static Engine,
        plans: BuildOptions,
    ) -> Result<(Arc<BoundOp>, Vec<Option<TensorType>>), OpError> {
        let positions = |of: &dyn Fn(&String) -> bool| {
            let numbers: String =
                self.names.iter().enumerate().filter(|(_, n)| of(n)).map(|(i, _)| format!("{i},")).collect();
            format!("({numbers})")
        };
        let data = positions(&|name| !self.params.contains_key(name));
        let held = positions(&|name| self.params.contains_key(name));
        let own = Some(("precision", self.settings.precision)).filter(|(_, precision)| *precision != "default");
        let flags = own.into_iter().chain([("data_indices", data.as_str()), ("param_indices", held.as_str())]);
        let op = CachedOp::compile(engine, &self.symbol, &CachedOpFlags::parse(flags)?, plans)?;
        let arrays: Vec<Option<&NDArray>> = self.names.iter().map(|name| self.params.get(name)).collect();
        let types = arrays.iter().map(|array| array.map(NDArray::tensor_type)).collect();
        Ok((Arc::new(BoundOp::new(Arc::new(op), &arrays)?), types))
    }
}

impl ModelSettings {
    /// Gives a shape without a name to the only input.
    fn name_lone_input(
        &mut self,
        names: &[String],
        params: &HashMap<String, NDArray>,
        labels: &HashSet<String>,
    ) -> Result<(), OpError> {
        let Some((name, _)) = self.shapes.iter_mut().find(|(name, _)| name.is_empty()) else { return Ok(()) };
        let free = names.iter().filter(|name| !params.contains_key(*name) && !labels.contains(*name));
        let free: Vec<&String> = free.collect();
        let [only] = &free[..] else {
            let lack = if params.is_empty() { "; no parameter file was found" } else { "" };
            let words = format!("shapes: say which of the inputs {} a shape is of: INPUT=N,C,H,W{lack}", listed(&free));
            return Err(bad(words));
        };
        (*only).clone_into(name);
        Ok(())
    }
}
