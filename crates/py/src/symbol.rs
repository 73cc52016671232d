//! Graphs: the base class of `mxrt.sym.Symbol`, and functions that make symbols.

use crate::imported::Imported;
use crate::operator::{attr_pairs, find};
use crate::settable::Settable;
use crate::{convert, errors, np_shape, runtime};
use mxrt_engine::{DeviceId, DeviceKind, FailureKind, ForkSafeOnce, OpError};
use mxrt_graph::symbol::{Listener, WatchedGraph, WatchedSource};
use mxrt_graph::{GraphError, LoadOptions, NodeEntry, Symbol, TrainingScope, symbol};
use mxrt_tensor::{DType, PartialShape, TensorType};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A graph: outputs of operators over variables. Python code uses the subclass `mxrt.sym.Symbol`.
#[pyclass(frozen, subclass, module = "mxrt._mxrt")]
pub(crate) struct SymbolBase {
    pub(crate) symbol: Settable<Symbol>,
}

/// The Python object of a symbol, of class `mxrt.sym.Symbol`.
fn wrap(py: Python<'_>, symbol: Symbol) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: Imported<PyType> = Imported::new();
    let class = CLASS.import(py, "mxrt.symbol.symbol", "Symbol")?;
    class.call1((Bound::new(py, SymbolBase { symbol: Settable::new(symbol) })?,))
}

fn raise(py: Python<'_>, error: GraphError) -> PyErr {
    errors::from_op(py, &OpError::from(error))
}

/// Shapes; `None` where the rank is unknown.
type Shapes<'py> = Vec<Option<Bound<'py, PyTuple>>>;
type OptionalNames = Vec<Option<&'static str>>;
/// A subgraph, and what it reads from outside.
type CutSubgraph<'py> = (Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>);

#[pymethods]
impl SymbolBase {
    /// Another handle to the same symbol: how subclasses are made. Without one a variable without a
    /// name, which `_become` fills: what pickles of MXNet begin with.
    #[new]
    #[pyo3(signature = (source = None))]
    fn new(source: Option<&Bound<'_, SymbolBase>>) -> SymbolBase {
        let symbol = match source {
            Some(source) => (*source.get().symbol).clone(),
            None => Symbol::variable("", BTreeMap::new()),
        };
        SymbolBase { symbol: Settable::new(symbol) }
    }

    /// Takes the place of a variable without a name, once: RuntimeError the second time.
    fn _become(&self, other: &Bound<'_, SymbolBase>) -> PyResult<()> {
        if self.symbol.set((*other.get().symbol).clone()) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("this symbol has become another one already"))
    }

    /// Name of the node; `None` for a group.
    #[getter]
    fn name(&self) -> Option<String> {
        self.symbol.name()
    }

    fn list_arguments(&self) -> Vec<String> {
        self.symbol.list_arguments()
    }

    fn list_auxiliary_states(&self) -> Vec<String> {
        self.symbol.list_auxiliary_states()
    }

    fn list_inputs(&self) -> Vec<String> {
        self.symbol.list_inputs()
    }

    fn list_outputs(&self) -> Vec<String> {
        self.symbol.list_outputs()
    }

    fn __len__(&self) -> usize {
        self.symbol.outputs().len()
    }

    fn get_internals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.symbol.get_internals())
    }

    fn get_children<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.symbol.get_children().map(|children| wrap(py, children)).transpose()
    }

    /// One output by its position.
    fn _output<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        match self.symbol.output(index) {
            Some(output) => wrap(py, output),
            None => Err(PyIndexError::new_err(format!(
                "index {index} is out of range: the symbol has {} outputs",
                self.symbol.outputs().len()
            ))),
        }
    }

    /// One output by its name.
    fn _output_named<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.symbol.find_output(name).map_err(|e| raise(py, e))?)
    }

    /// Whether the node of the first output is a variable.
    #[getter]
    fn _is_variable(&self) -> bool {
        self.symbol.outputs().iter().all(|entry| entry.node.is_variable())
    }

    fn attr(&self, key: &str) -> Option<String> {
        self.symbol.attr(key)
    }

    fn list_attr(&self) -> BTreeMap<String, String> {
        self.symbol.list_attr()
    }

    fn attr_dict(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.symbol.attr_dict()
    }

    /// Attributes of all variables, by name.
    fn _variable_attrs(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.symbol.input_nodes().iter().map(|node| (node.name.clone(), node.attrs())).collect()
    }

    fn _set_one_attr(&self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        self.symbol.set_attr(key, value).map_err(|e| raise(py, e))
    }

    /// The graph as MXNet writes it. With `np_shape` the text says that its shapes are NumPy's.
    #[pyo3(signature = (np_shape = false))]
    fn tojson(&self, np_shape: bool) -> String {
        if np_shape { self.symbol.to_json_np_shape() } else { self.symbol.to_json() }
    }

    /// The graph as text, as MXNet writes it.
    fn _described(&self) -> String {
        symbol::described(&self.symbol)
    }

    fn _deep_copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap(py, self.symbol.deep_copy())
    }

    /// The number of the output that a symbol with one output is, among those of its node.
    #[getter]
    fn _value_index(&self) -> Option<usize> {
        match self.symbol.outputs() {
            [entry] => Some(entry.index),
            _ => None,
        }
    }

    /// The variables, in the order of `list_inputs`.
    fn _input_symbols<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let symbol = |node| wrap(py, Symbol::from_entries(vec![NodeEntry::new(node, 0)]));
        self.symbol.input_nodes().into_iter().map(symbol).collect()
    }

    /// The nodes of a subgraph, by its name, as a graph of their own, and what they read from
    /// outside: values that are variables of the new graph.
    fn _cut_subgraph<'py>(&self, py: Python<'py>, name: &str) -> PyResult<CutSubgraph<'py>> {
        let (inner, outside) = self.symbol.cut_subgraph(name);
        let outside = outside.into_iter().map(|entry| wrap(py, Symbol::from_entries(vec![entry])));
        Ok((wrap(py, inner)?, outside.collect::<PyResult<_>>()?))
    }

    /// The graph that computes as in training, outside and inside loops and branches. `None` where
    /// it is the same.
    fn _in_training<'py>(&self, py: Python<'py>, outside: bool, inside: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let form = self.symbol.in_training(TrainingScope { outside, inside });
        form.map_err(|error| errors::from_op(py, &error))?.map(|form| wrap(py, form)).transpose()
    }

    /// A copy with other symbols in the place of variables.
    #[pyo3(signature = (name, arguments))]
    fn _compose<'py>(
        &self,
        py: Python<'py>,
        name: Option<&str>,
        arguments: Vec<(Option<String>, Bound<'py, SymbolBase>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = arguments.into_iter().map(|(k, s)| (k, s.get().symbol.clone())).collect();
        wrap(py, self.symbol.compose(name, arguments).map_err(|e| raise(py, e))?)
    }

    /// Shapes of arguments, outputs and auxiliary states, and whether all are known. 0 and `()`
    /// stand for unknown; with NumPy's shapes -1 and `None` do. With `labels` those of labels are
    /// chosen where they do not follow.
    #[pyo3(signature = (known, partial, labels = false))]
    fn _infer_shape<'py>(
        &self,
        py: Python<'py>,
        known: Vec<(String, Vec<i64>)>,
        partial: bool,
        labels: bool,
    ) -> PyResult<(Shapes<'py>, Shapes<'py>, Shapes<'py>, bool)> {
        let known = shapes_known(known)?;
        let infer = || {
            let known = if labels { self.symbol.with_label_shapes(known)? } else { known };
            self.symbol.infer_shape(&known, partial)
        };
        let found = py.detach(infer).map_err(|e| raise(py, e))?;
        let list =
            |shapes: &[PartialShape]| shapes.iter().map(|s| np_shape::shown(py, s)).collect::<PyResult<Vec<_>>>();
        Ok((list(&found.args)?, list(&found.outs)?, list(&found.aux)?, found.complete))
    }

    /// Shapes as MXNet's `infer_shape_partial` gives them.
    fn _infer_shape_as_mxnet<'py>(
        &self,
        py: Python<'py>,
        known: Vec<(String, Vec<i64>)>,
    ) -> PyResult<(Shapes<'py>, Shapes<'py>, Shapes<'py>)> {
        let known = shapes_known(known)?;
        let found = py.detach(|| self.symbol.infer_shape_as_mxnet(&known)).map_err(|e| raise(py, e))?;
        let list =
            |shapes: &[PartialShape]| shapes.iter().map(|s| np_shape::shown(py, s)).collect::<PyResult<Vec<_>>>();
        Ok((list(&found.args)?, list(&found.outs)?, list(&found.aux)?))
    }

    /// Returns the names of the nodes that a GPU does not run, for inputs of these shapes and types
    /// in the order of `list_inputs`. No GPU is needed.
    fn _nodes_not_on_gpu(&self, py: Python<'_>, inputs: Vec<(Vec<usize>, String)>) -> PyResult<Vec<String>> {
        let tensor = |(shape, dtype): (Vec<usize>, String)| Ok(TensorType::new(convert::dtype(&dtype)?, shape));
        let inputs = inputs.into_iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
        let gpu = DeviceId::new(DeviceKind::GPU, 0);
        let found = py.detach(|| self.symbol.nodes_not_on(gpu, &inputs)).map_err(|e| errors::from_op(py, &e))?;
        Ok(found.iter().map(ToString::to_string).collect())
    }

    /// Names of the arguments that matter only in training, in the order of the arguments.
    fn _labels(&self) -> Vec<String> {
        let labels = self.symbol.labels();
        self.symbol.list_arguments().into_iter().filter(|name| labels.contains(name)).collect()
    }

    /// Dtype names of arguments, outputs and auxiliary states, and whether all are known.
    fn _infer_type(
        &self,
        py: Python<'_>,
        known: Vec<(String, String)>,
        partial: bool,
    ) -> PyResult<(OptionalNames, OptionalNames, OptionalNames, bool)> {
        let known =
            known.into_iter().map(|(name, dtype)| Ok((name, convert::dtype(&dtype)?))).collect::<PyResult<Vec<_>>>()?;
        let found = py.detach(|| self.symbol.infer_type(&known, partial)).map_err(|e| raise(py, e))?;
        let list = |dtypes: &[Option<DType>]| -> OptionalNames { dtypes.iter().map(|d| d.map(DType::name)).collect() };
        Ok((list(&found.args), list(&found.outs), list(&found.aux), found.complete))
    }
}

fn shapes_known(known: Vec<(String, Vec<i64>)>) -> PyResult<Vec<(String, PartialShape)>> {
    known.into_iter().map(|(name, dims)| Ok((name, np_shape::partial(&dims)?))).collect()
}

fn attr_map(attrs: Option<&Bound<'_, PyDict>>) -> PyResult<BTreeMap<String, String>> {
    Ok(attr_pairs(attrs)?.into_iter().collect())
}

/// A variable.
#[pyfunction]
#[pyo3(signature = (name, attrs = None))]
pub(crate) fn variable<'py>(
    py: Python<'py>,
    name: &str,
    attrs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    wrap(py, Symbol::variable(name, attr_map(attrs)?))
}

/// An operator applied to symbols, each with the name of the input it is for, or none, and to the
/// graphs that it runs.
#[pyfunction]
#[pyo3(signature = (op, name, attrs, inputs, graphs = Vec::new()))]
pub(crate) fn create<'py>(
    py: Python<'py>,
    op: &str,
    name: String,
    attrs: &Bound<'py, PyDict>,
    inputs: Vec<(Option<String>, Bound<'py, SymbolBase>)>,
    graphs: Vec<Bound<'py, SymbolBase>>,
) -> PyResult<Bound<'py, PyAny>> {
    let def = find(op).map_err(|e| errors::from_op(py, &e))?;
    let inputs = inputs.into_iter().map(|(key, symbol)| (key, symbol.get().symbol.clone())).collect();
    let graphs = graphs.into_iter().map(|symbol| symbol.get().symbol.clone()).collect();
    let made = Symbol::create_with_subgraphs(def, name, attr_map(Some(attrs))?, inputs, graphs);
    wrap(py, made.map_err(|e| errors::from_op(py, &e))?)
}

/// Whether a value is an input, else a result, and its place among those.
type Source = (bool, usize);
/// A graph that returns what all operators compute; name, operator and source of each value that a
/// listener hears; sources of the results of the graph itself.
type Watched<'py> = (Bound<'py, PyAny>, Vec<(String, &'static str, Source)>, Vec<Source>);

/// Prepares a graph for a listener: the monitor of an executor, or the operator hook of a block.
#[pyfunction]
pub(crate) fn watched<'py>(symbol: &Bound<'py, SymbolBase>, hook: bool, inputs_too: bool) -> PyResult<Watched<'py>> {
    let py = symbol.py();
    let listener = if hook { Listener::Hook } else { Listener::Monitor };
    let graph =
        WatchedGraph::new(&symbol.get().symbol, listener, inputs_too).map_err(|error| errors::from_op(py, &error))?;
    let source = |source| match source {
        WatchedSource::Input(place) => (true, place),
        WatchedSource::Result(place) => (false, place),
    };
    let values = graph.values.into_iter().map(|value| (value.name, value.operator, source(value.source))).collect();
    Ok((wrap(py, graph.everything)?, values, graph.heads.into_iter().map(source).collect()))
}

/// One symbol with the outputs of several.
#[pyfunction]
pub(crate) fn group<'py>(py: Python<'py>, symbols: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let all = symbols
        .iter()
        .map(|s| Ok(s.cast::<SymbolBase>()?.get().symbol.clone()))
        .collect::<PyResult<Vec<_>>>()
        .map_err(|_| PyTypeError::new_err("Expected a list of symbols as input"))?;
    wrap(py, Symbol::group(&all))
}

/// A symbol from its JSON text, and warnings for the user. Errors of the text name the file.
#[pyfunction]
#[pyo3(signature = (text, file=None))]
pub(crate) fn load_json<'py>(
    py: Python<'py>,
    text: &str,
    file: Option<&str>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>)> {
    let max_nodes = nodes_allowed()?;
    let memory = Some(runtime::runtime()?.engine.memory());
    let options = LoadOptions { max_nodes, memory, np_shape: np_shape::is_np_shape() };
    let loaded = py.detach(|| Symbol::load_json_with(text, options)).map_err(|e| {
        let mut error = OpError::from(e);
        if let Some(file) = file {
            error.message = format!("'{file}': {}", error.message);
        }
        errors::from_op(py, &error)
    })?;
    Ok((wrap(py, loaded.symbol)?, loaded.warnings))
}

/// Nodes that a symbol's text may have; the largest number: any.
fn max_nodes() -> PyResult<&'static AtomicUsize> {
    static LIMIT: ForkSafeOnce<AtomicUsize> = ForkSafeOnce::new();
    let settings = runtime::environment().map_err(|message| errors::plain(FailureKind::Value, message))?;
    Ok(LIMIT.get_or_init(|| AtomicUsize::new(settings.max_nodes.unwrap_or(usize::MAX))))
}

/// Nodes that a symbol's text may have now; None: any number.
pub(crate) fn nodes_allowed() -> PyResult<Option<usize>> {
    Ok(Some(max_nodes()?.load(Ordering::Relaxed)).filter(|limit| *limit != usize::MAX))
}

/// Bounds the nodes of the symbols that are loaded from now on; None: no bound.
#[pyfunction]
#[pyo3(signature = (nodes))]
pub(crate) fn set_max_nodes(nodes: Option<usize>) -> PyResult<()> {
    max_nodes()?.store(nodes.unwrap_or(usize::MAX), Ordering::Relaxed);
    Ok(())
}
