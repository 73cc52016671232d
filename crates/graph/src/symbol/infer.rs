//! Shape and type inference over whole graphs, in both directions, until nothing new is learnt.

use super::{GraphError, Node, NodeEntry, Symbol, as_mxnet, aux_of};
use crate::control_flow::InnerGraphs;
use mxrt_engine::{FailureKind, OpError, reserve};
use mxrt_ops::{AttrDef, AttrKind, Attrs, DTypes, OpDef, Shapes};
use mxrt_tensor::{DType, PartialShape, is_np_shape};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Limit of the number of axes. A hint with more of them is damaged.
const MAX_AXES: usize = 64;

/// Approximate memory that inference takes for each node.
const MEMORY_PER_NODE: usize = 1 << 10;

/// Shapes of the variables and outputs, as far as they are known.
#[derive(Clone, Debug)]
pub struct InferredShapes {
    /// shapes of the arguments, in the order of `list_arguments`
    pub args: Vec<PartialShape>,
    /// shapes of the outputs
    pub outs: Vec<PartialShape>,
    /// shapes of the auxiliary states
    pub aux: Vec<PartialShape>,
    /// whether everything in the graph is known (always true if a partial result was asked for)
    pub complete: bool,
}

/// Element types of the variables and outputs, as far as they are known.
#[derive(Clone, Debug)]
pub struct InferredTypes {
    /// types of the arguments, in the order of `list_arguments`
    pub args: Vec<Option<DType>>,
    /// types of the outputs
    pub outs: Vec<Option<DType>>,
    /// types of the auxiliary states
    pub aux: Vec<Option<DType>>,
    /// whether everything in the graph is known (always true if a partial result was asked for)
    pub complete: bool,
}

/// Knowledge about every output of every node.
#[derive(Clone, Debug)]
pub struct Inferred<T> {
    /// the nodes, inputs before their users
    pub nodes: Vec<Arc<Node>>,
    values: Vec<T>,
    first: Vec<usize>,
    position: HashMap<usize, usize>,
}

/// Identity of a node while `Inferred::nodes` keeps it alive.
fn identity(node: &Arc<Node>) -> usize {
    Arc::as_ptr(node).addr()
}

impl<T> Inferred<T> {
    /// The knowledge about one output. `None` if the node is not part of the graph.
    pub fn get(&self, entry: &NodeEntry) -> Option<&T> {
        let node = *self.position.get(&identity(&entry.node))?;
        self.outputs(node).get(entry.index)
    }

    /// The knowledge about the outputs of `nodes[node]`.
    pub fn outputs(&self, node: usize) -> &[T] {
        match (self.first.get(node), self.first.get(node + 1)) {
            (Some(from), Some(to)) => &self.values[*from..*to],
            _ => &[],
        }
    }
}

impl Symbol {
    /// Infers shapes from those of some variables. Shapes that cannot be inferred stay unknown in
    /// the result.
    ///
    /// A complete shape given here takes precedence over the variable's `__shape__`, which
    /// completes a partial one.
    pub fn infer_shape(&self, known: &[(String, PartialShape)], partial: bool) -> Result<InferredShapes, GraphError> {
        let all = self.infer_all_shapes(known)?;
        let (args, outs, aux) = self.split(&all);
        let complete = partial || all.values.iter().all(PartialShape::is_complete);
        Ok(InferredShapes { args, outs, aux, complete })
    }

    /// [`Symbol::infer_shape`], except for what MXNet leaves open where shapes are known in part.
    pub fn infer_shape_as_mxnet(&self, known: &[(String, PartialShape)]) -> Result<InferredShapes, GraphError> {
        let mut inference = Inference::<PartialShape>::new(self, known, "InferShape")?;
        inference.as_mxnet = true;
        let all = inference.run()?;
        let (args, outs, aux) = self.split(&all);
        Ok(InferredShapes { args, outs, aux, complete: true })
    }

    /// Infers element types from those of some variables.
    pub fn infer_type(&self, known: &[(String, DType)], partial: bool) -> Result<InferredTypes, GraphError> {
        let all = self.infer_all_types(known)?;
        let (args, outs, aux) = self.split(&all);
        let complete = partial || all.values.iter().all(Option::is_some);
        Ok(InferredTypes { args, outs, aux, complete })
    }

    /// [`Symbol::infer_shape`] for every output of every node.
    pub fn infer_all_shapes(&self, known: &[(String, PartialShape)]) -> Result<Inferred<PartialShape>, GraphError> {
        Inference::<PartialShape>::new(self, known, "InferShape")?.run()
    }

    /// [`Symbol::infer_type`] for every output of every node.
    pub fn infer_all_types(&self, known: &[(String, DType)]) -> Result<Inferred<Option<DType>>, GraphError> {
        let known: Vec<_> = known.iter().map(|(name, dtype)| (name.clone(), Some(*dtype))).collect();
        Inference::<Option<DType>>::new(self, &known, "InferType")?.run()
    }

    fn split<T: Clone>(&self, all: &Inferred<T>) -> (Vec<T>, Vec<T>, Vec<T>) {
        let aux_nodes = aux_of(&all.nodes);
        let (mut args, mut aux) = (Vec::new(), Vec::new());
        for (i, node) in all.nodes.iter().enumerate() {
            if node.is_variable() {
                let list = if aux_nodes.contains(&Arc::as_ptr(node)) { &mut aux } else { &mut args };
                list.extend(all.outputs(i).iter().cloned());
            }
        }
        let outs = self.outputs().iter().filter_map(|e| all.get(e).cloned()).collect();
        (args, outs, aux)
    }
}

/// A property of outputs that operators infer.
trait Property: Clone + PartialEq {
    const UNKNOWN: Self;
    /// The value that the variable's attributes give as a hint.
    fn hint(node: &Node) -> Result<Self, OpError>;
    fn is_complete(&self) -> bool;
    /// Takes over what `other` knows. Returns whether that was anything new, or a message if the
    /// two contradict.
    fn learn(&mut self, other: &Self) -> Result<bool, String>;
    /// Infers by the rule of the operator, or through its graphs.
    fn infer(op: &OpDef, node: &Node, inputs: &mut [Self], outputs: &mut [Self]) -> Result<(), OpError>;
    /// Adds the input values to an error, if all of them are complete.
    fn describe(error: OpError, inputs: &[Self]) -> OpError;
    /// [`Property::infer`], except for what MXNet leaves open.
    fn infer_as_mxnet(op: &OpDef, node: &Node, inputs: &mut [Self], outputs: &mut [Self]) -> Result<(), OpError> {
        Self::infer(op, node, inputs, outputs)
    }
}

impl Property for PartialShape {
    const UNKNOWN: PartialShape = PartialShape::UNKNOWN;

    fn hint(node: &Node) -> Result<PartialShape, OpError> {
        static DEFS: [AttrDef; 1] = [AttrDef::new("shape", AttrKind::OptShape, "None", "")];
        let Some(text) = node.attr("__shape__") else { return Ok(PartialShape::UNKNOWN) };
        let bad = |why: &str| {
            node.error(FailureKind::Value, format!("variable '{}': __shape__ is '{text}': {why}", node.name))
        };
        let parsed =
            Attrs::parse(&DEFS, [("shape", text.as_str())]).map_err(|_| bad("expected a tuple like (0, 3)"))?;
        let Some(dims) = parsed.opt_ints("shape") else { return Ok(PartialShape::UNKNOWN) };
        if dims.len() > MAX_AXES {
            return Err(bad("no array has that many axes"));
        }
        let numpy = is_np_shape();
        if dims.is_empty() && !numpy {
            return Ok(PartialShape::UNKNOWN);
        }
        let extent = |d: &i64| match *d {
            -1 => Ok(None),
            0 if !numpy => Ok(None),
            d => usize::try_from(d).map(Some).map_err(|_| bad("expected extents, -1 where one is unknown")),
        };
        Ok(PartialShape::from_dims(dims.iter().map(extent).collect::<Result<Vec<_>, _>>()?))
    }

    fn is_complete(&self) -> bool {
        PartialShape::is_complete(self)
    }

    fn learn(&mut self, other: &PartialShape) -> Result<bool, String> {
        if let Some(rank) = other.rank().filter(|rank| *rank > MAX_AXES) {
            return Err(format!("a shape of {rank} axes: no array has more than {MAX_AXES}"));
        }
        self.merge(other).map_err(|_| format!("Shape inconsistent, Provided = {self}, inferred shape={other}"))
    }

    fn infer(op: &OpDef, node: &Node, inputs: &mut [Self], outputs: &mut [Self]) -> Result<(), OpError> {
        match node.wiring() {
            Some(wiring) => wiring.infer_shapes(&node.subgraphs, inputs, outputs),
            None => (op.infer_shape)(&mut Shapes { attrs: node.parsed(), inputs, outputs }),
        }
    }

    fn infer_as_mxnet(op: &OpDef, node: &Node, inputs: &mut [Self], outputs: &mut [Self]) -> Result<(), OpError> {
        if !as_mxnet::infers(node, inputs) {
            return Ok(());
        }
        let before: SmallVec<[Self; 4]> = inputs.iter().cloned().collect();
        Self::infer(op, node, inputs, outputs)?;
        as_mxnet::forget(node, &before, inputs, outputs);
        Ok(())
    }

    fn describe(error: OpError, inputs: &[Self]) -> OpError {
        if !error.shapes.is_empty() {
            return error;
        }
        let complete: Option<Vec<Vec<usize>>> = inputs.iter().map(|s| s.complete().map(|s| s.to_vec())).collect();
        error.shapes(complete.unwrap_or_default())
    }
}

impl Property for Option<DType> {
    const UNKNOWN: Option<DType> = None;

    fn hint(node: &Node) -> Result<Option<DType>, OpError> {
        let Some(text) = node.attr("__dtype__") else { return Ok(None) };
        let code: Option<i32> = text.trim().parse().ok();
        match (code, code.and_then(DType::from_code)) {
            (Some(-1), _) => Ok(None),
            (_, Some(dtype)) => Ok(Some(dtype)),
            _ => {
                let message = format!("variable '{}': __dtype__ is '{text}', expected a code from 0 to 12", node.name);
                Err(node.error(FailureKind::Value, message))
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.is_some()
    }

    fn learn(&mut self, other: &Option<DType>) -> Result<bool, String> {
        match (*self, *other) {
            (_, None) => Ok(false),
            (None, Some(_)) => {
                *self = *other;
                Ok(true)
            }
            (Some(a), Some(b)) if a == b => Ok(false),
            (Some(a), Some(b)) => Err(format!("Incompatible attr: expected {b}, got {a}")),
        }
    }

    fn infer(op: &OpDef, node: &Node, inputs: &mut [Self], outputs: &mut [Self]) -> Result<(), OpError> {
        match node.wiring() {
            Some(wiring) => wiring.infer_dtypes(&node.subgraphs, inputs, outputs),
            None => (op.infer_dtype)(&mut DTypes { attrs: node.parsed(), inputs, outputs }),
        }
    }

    fn describe(error: OpError, inputs: &[Self]) -> OpError {
        if !error.dtypes.is_empty() {
            return error;
        }
        let complete: Option<Vec<&'static str>> = inputs.iter().map(|d| d.map(DType::name)).collect();
        error.dtypes(complete.unwrap_or_default())
    }
}

/// Inference in progress: the values on the edges of a graph, and the nodes to visit.
struct Inference<T> {
    state: Inferred<T>,
    /// positions in `values` of every node's inputs
    inputs: Vec<SmallVec<[usize; 4]>>,
    /// nodes around each value: its maker and its users
    around: Vec<SmallVec<[u32; 2]>>,
    pending: Vec<bool>,
    num_pending: usize,
    /// whether what MXNet leaves open stays open
    as_mxnet: bool,
}

impl<T: Property> Inference<T> {
    fn new(symbol: &Symbol, known: &[(String, T)], context: &'static str) -> Result<Inference<T>, GraphError> {
        let nodes = symbol.topo();
        reserve::check_room(nodes.len().saturating_mul(MEMORY_PER_NODE)).map_err(OpError::from)?;
        let mut first = Vec::with_capacity(nodes.len() + 1);
        let mut position = HashMap::with_capacity(nodes.len());
        let mut total = 0usize;
        for (i, node) in nodes.iter().enumerate() {
            first.push(total);
            position.insert(identity(node), i);
            total += node.num_outputs();
        }
        first.push(total);
        let value_of = |e: &NodeEntry| first[position[&identity(&e.node)]] + e.index;
        let inputs: Vec<SmallVec<[usize; 4]>> = nodes.iter().map(|n| n.inputs.iter().map(value_of).collect()).collect();
        let mut around: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); total];
        for (i, node) in nodes.iter().enumerate() {
            if !node.is_variable() {
                for value in inputs[i].iter().copied().chain(first[i]..first[i + 1]) {
                    around[value].push(i as u32);
                }
            }
        }
        let values = starting_values(&nodes, &first, total, known, context)?;
        let pending: Vec<bool> = nodes.iter().map(|n| !n.is_variable()).collect();
        let num_pending = pending.iter().filter(|p| **p).count();
        Ok(Inference {
            state: Inferred { nodes, values, first, position },
            inputs,
            around,
            pending,
            num_pending,
            as_mxnet: false,
        })
    }

    /// Sweeps forwards and backwards over the nodes that have news. Every visit but the first needs
    /// news, and values only ever become more complete, so this ends.
    fn run(mut self) -> Result<Inferred<T>, GraphError> {
        let n = self.state.nodes.len();
        let mut forward = true;
        while self.num_pending > 0 {
            for step in 0..n {
                let i = if forward { step } else { n - 1 - step };
                if std::mem::take(&mut self.pending[i]) {
                    self.num_pending -= 1;
                    self.visit(i)?;
                }
            }
            forward = !forward;
        }
        Ok(self.state)
    }

    fn visit(&mut self, i: usize) -> Result<(), GraphError> {
        let node = self.state.nodes[i].clone();
        let Some(op) = node.op else { return Ok(()) };
        let outputs = self.state.first[i]..self.state.first[i + 1];
        let before: SmallVec<[T; 4]> = self.inputs[i].iter().map(|v| self.state.values[*v].clone()).collect();
        let mut ins = before.clone();
        let mut outs: SmallVec<[T; 2]> = self.state.values[outputs.clone()].iter().cloned().collect();
        let fail = |e: OpError| {
            let mut error = T::describe(node.describe_in(e), &before);
            error.message = format!("Error in operator {}: {}", node.name, error.message);
            error
        };
        let infer = if self.as_mxnet { T::infer_as_mxnet } else { T::infer };
        infer(op, &node, &mut ins, &mut outs).map_err(fail)?;
        let places = self.inputs[i].clone().into_iter().chain(outputs);
        for (place, value) in places.zip(ins.iter().chain(&outs)) {
            let learnt = self.state.values[place].learn(value);
            if learnt.map_err(|text| fail(OpError::new(FailureKind::Shape, text)))? {
                self.wake(place);
            }
        }
        Ok(())
    }

    /// Marks the nodes around a value about which something was learnt. They include the node that
    /// taught it, which may conclude more from its own news.
    fn wake(&mut self, place: usize) {
        for node in &self.around[place] {
            if !std::mem::replace(&mut self.pending[*node as usize], true) {
                self.num_pending += 1;
            }
        }
    }
}

/// Infers through an inner graph from what `inputs` and `outputs` say of its variables and outputs,
/// and adds what is found out about them.
fn infer_inner<T: Property>(symbol: &Symbol, inputs: &mut [T], outputs: &mut [T]) -> Result<(), OpError> {
    let mut inference = Inference::<T>::new(symbol, &[], "")?;
    let state = &mut inference.state;
    let variables: Vec<usize> = (0..state.nodes.len()).filter(|i| state.nodes[*i].is_variable()).collect();
    let place = |state: &Inferred<T>, e: &NodeEntry| state.first[state.position[&identity(&e.node)]] + e.index;
    for (i, known) in variables.iter().zip(&*inputs) {
        let value = &mut state.values[state.first[*i]];
        // What is given goes before a hint.
        if known.is_complete() {
            *value = known.clone();
        } else {
            let node = &state.nodes[*i];
            value.learn(known).map_err(|text| node.error(FailureKind::Shape, format!("'{}': {text}", node.name)))?;
        }
    }
    for (entry, known) in symbol.outputs().iter().zip(&*outputs) {
        let at = place(state, entry);
        let differs = |text| OpError::new(FailureKind::Shape, format!("the inner output '{entry:?}': {text}"));
        state.values[at].learn(known).map_err(differs)?;
    }
    let state = inference.run()?;
    for (i, input) in variables.iter().zip(inputs) {
        *input = state.values[state.first[*i]].clone();
    }
    for (entry, output) in symbol.outputs().iter().zip(outputs) {
        *output = state.values[place(&state, entry)].clone();
    }
    Ok(())
}

impl InnerGraphs for Vec<Symbol> {
    fn infer_shapes(
        &self,
        graph: usize,
        inputs: &mut [PartialShape],
        outputs: &mut [PartialShape],
    ) -> Result<(), OpError> {
        infer_inner(&self[graph], inputs, outputs)
    }

    fn infer_dtypes(
        &self,
        graph: usize,
        inputs: &mut [Option<DType>],
        outputs: &mut [Option<DType>],
    ) -> Result<(), OpError> {
        infer_inner(&self[graph], inputs, outputs)
    }
}

/// Values of the variables, from arguments and hints. All other values are unknown.
fn starting_values<T: Property>(
    nodes: &[Arc<Node>],
    first: &[usize],
    total: usize,
    known: &[(String, T)],
    context: &'static str,
) -> Result<Vec<T>, GraphError> {
    let mut values = vec![T::UNKNOWN; total];
    let given: HashMap<&str, &T> = known.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let mut used: HashSet<&str> = HashSet::new();
    for (i, node) in nodes.iter().enumerate().filter(|(_, n)| n.is_variable()) {
        let value = &mut values[first[i]];
        if let Some((name, given)) = given.get_key_value(node.name.as_str()) {
            used.insert(name);
            *value = (*given).clone();
        }
        if !value.is_complete() {
            value.learn(&T::hint(node)?).map_err(|text| {
                node.error(FailureKind::Shape, format!("variable '{}' has a hint that does not fit: {text}", node.name))
            })?;
        }
    }
    match known.iter().find(|(name, _)| !used.contains(name.as_str())) {
        None => Ok(values),
        Some((name, _)) => {
            let names = nodes.iter().filter(|n| n.is_variable()).map(|n| n.name.clone()).collect();
            Err(GraphError::UnknownArgument { context, name: name.clone(), known: names })
        }
    }
}
