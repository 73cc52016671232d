//! Cutting a graph at its late operators.

use crate::ir::{Graph, GraphInput, GraphNode, Value};
use mxrt_engine::{FailureKind, OpError};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Late operators of a graph, one bit each.
type LateSet = u128;

/// More late operators do not fit into the set.
const MAX_LATE: usize = LateSet::BITS as usize;

/// Where a stage finds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueSource {
    /// among the inputs of the whole graph
    Input(usize),
    /// among the values that outlive their stage, by number
    Held(usize),
}

/// A part of the graph that runs as a whole. `makes` are the numbers of the values that outlive it.
pub(super) enum Stage {
    /// nodes whose shapes follow from those of the segment's inputs
    Segment { graph: Graph, sources: Vec<ValueSource>, makes: Vec<usize> },
    /// an operator whose shapes follow from contents
    Operator { node: GraphNode, sources: Vec<ValueSource>, makes: Vec<usize> },
}

/// A graph in stages, in an order in which they can run.
pub(super) struct Cut {
    pub stages: Vec<Stage>,
    /// number of values that outlive their stage
    pub values: usize,
    pub outputs: Vec<ValueSource>,
}

/// The nodes that depend on the same late operators, and the late operators that depend on these.
#[derive(Default)]
struct Level {
    nodes: BTreeSet<usize>,
    late: Vec<usize>,
}

/// Cuts a graph; `None` if it has no late operator.
pub(super) fn cut(graph: &Graph) -> Result<Option<Cut>, OpError> {
    graph.nodes.iter().try_for_each(refuse_inside)?;
    let late: Vec<usize> = (0..graph.nodes.len()).filter(|n| graph.nodes[*n].op.is_late()).collect();
    if late.is_empty() {
        return Ok(None);
    }
    if late.len() > MAX_LATE {
        let message =
            format!("{} operators have shapes that follow from contents; at most {MAX_LATE} are possible", late.len());
        return Err(OpError::new(FailureKind::NotImplemented, message).op("CachedOp"));
    }
    Ok(Some(Cutter::new(graph, &late).cut()))
}

/// Steps of a loop have fixed shapes.
fn refuse_inside(node: &GraphNode) -> Result<(), OpError> {
    let Some(flow) = &node.flow else { return Ok(()) };
    for inner in flow.graphs.iter().flat_map(|graph| &graph.nodes) {
        refuse_inside(inner)?;
        if inner.op.is_late() {
            let message = format!(
                "its shape follows from contents, which is not possible inside of {} '{}'",
                node.stands_for, node.name
            );
            return Err(OpError::new(FailureKind::NotImplemented, message).op(inner.stands_for).node(&*inner.name));
        }
    }
    Ok(())
}

struct Cutter<'a> {
    graph: &'a Graph,
    /// by node: the late operators that it depends on
    behind: Vec<LateSet>,
    /// by node: whether it computes with parameters alone
    constant: Vec<bool>,
    held: HashMap<Value, usize>,
}

impl<'a> Cutter<'a> {
    fn new(graph: &'a Graph, late: &[usize]) -> Cutter<'a> {
        let mut behind: Vec<LateSet> = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let of_input = |value: &Value| match *value {
                Value::Input(_) => 0,
                Value::Node(m, _) => behind[m] | late.binary_search(&m).map_or(0, |bit| 1 << bit),
            };
            let all = node.inputs.iter().map(of_input).fold(0, |a, b| a | b);
            behind.push(all);
        }
        let mut constant = graph.constant_nodes();
        for (n, constant) in constant.iter_mut().enumerate() {
            *constant &= behind[n] == 0 && !graph.nodes[n].op.is_late();
        }
        Cutter { graph, behind, constant, held: HashMap::new() }
    }

    fn cut(mut self) -> Cut {
        let graph = self.graph;
        let mut levels: BTreeMap<(u32, LateSet), Level> = BTreeMap::new();
        for (n, node) in graph.nodes.iter().enumerate() {
            let set = self.behind[n];
            let level = levels.entry((set.count_ones(), set)).or_default();
            if node.op.is_late() {
                level.late.push(n);
            } else if !self.constant[n] {
                level.nodes.insert(n);
            }
        }
        for (n, node) in graph.nodes.iter().enumerate() {
            for value in &node.inputs {
                let crosses = |m: usize| {
                    let same = self.behind[m] == self.behind[n] && !graph.nodes[m].op.is_late();
                    node.op.is_late() || (!self.constant[m] && !same)
                };
                if value.node().is_some_and(crosses) {
                    self.hold(*value);
                }
            }
        }
        let outputs = graph.outputs.iter().map(|value| self.hold(*value)).collect();
        // What is made of parameters alone and outlives its stage is made in the first one.
        let made: Vec<usize> = self.held.keys().filter_map(|v| v.node()).filter(|n| self.constant[*n]).collect();
        levels.entry((0, 0)).or_default().nodes.extend(made);
        let mut stages = Vec::new();
        for Level { nodes, late } in levels.into_values() {
            stages.extend(self.segment(&nodes));
            for n in late {
                let sources = graph.nodes[n].inputs.iter().map(|value| self.source(*value)).collect();
                stages.push(Stage::Operator {
                    node: graph.nodes[n].clone(),
                    sources,
                    makes: self.made_by(n).collect(),
                });
            }
        }
        Cut { stages, values: self.held.len(), outputs }
    }

    /// A value outlives its stage.
    fn hold(&mut self, value: Value) -> ValueSource {
        if let Value::Node(..) = value {
            let next = self.held.len();
            self.held.entry(value).or_insert(next);
        }
        self.source(value)
    }

    fn source(&self, value: Value) -> ValueSource {
        match value {
            Value::Input(input) => ValueSource::Input(input),
            Value::Node(..) => ValueSource::Held(self.held[&value]),
        }
    }

    /// The values of a late operator: those that no stage reads are there as well.
    fn made_by(&mut self, n: usize) -> impl Iterator<Item = usize> {
        let node = &self.graph.nodes[n];
        for o in 0..node.op.num_outputs(&node.attrs) {
            self.hold(Value::Node(n, o));
        }
        let held = &self.held;
        (0..node.op.num_outputs(&node.attrs)).map(move |o| held[&Value::Node(n, o)])
    }

    /// The graph of these nodes and of the constants that they read; none if no other stage reads
    /// what they make.
    fn segment(&self, nodes: &BTreeSet<usize>) -> Option<Stage> {
        let mut needed = nodes.clone();
        let mut open: Vec<usize> = nodes.iter().copied().collect();
        while let Some(n) = open.pop() {
            let read = self.graph.nodes[n].inputs.iter().filter_map(|value| value.node());
            open.extend(read.filter(|m| self.constant[*m] && needed.insert(*m)).collect::<Vec<_>>());
        }
        let mut made = Graph::default();
        let (mut sources, mut inputs) = (Vec::new(), HashMap::new());
        let mut moved: HashMap<usize, usize> = HashMap::new();
        for n in &needed {
            let mut node = self.graph.nodes[*n].clone();
            for value in &mut node.inputs {
                *value = match *value {
                    Value::Node(m, o) if moved.contains_key(&m) => Value::Node(moved[&m], o),
                    other => {
                        let source = self.source(other);
                        let at = *inputs.entry(source).or_insert_with(|| {
                            made.inputs.push(self.input(other, source));
                            sources.push(source);
                            sources.len() - 1
                        });
                        Value::Input(at)
                    }
                };
            }
            moved.insert(*n, made.nodes.len());
            made.nodes.push(node);
        }
        let mut makes = Vec::new();
        for n in nodes {
            let node = &self.graph.nodes[*n];
            for o in 0..node.op.num_outputs(&node.attrs) {
                if let Some(value) = self.held.get(&Value::Node(*n, o)) {
                    made.outputs.push(Value::Node(moved[n], o));
                    makes.push(*value);
                }
            }
        }
        (!makes.is_empty()).then_some(Stage::Segment { graph: made, sources, makes })
    }

    /// The input of a segment that stands for a value.
    fn input(&self, value: Value, source: ValueSource) -> GraphInput {
        match (value, source) {
            (Value::Input(i), _) => self.graph.inputs[i].clone(),
            (Value::Node(n, _), source) => {
                let number = if let ValueSource::Held(number) = source { number } else { 0 };
                let (name, origin) = (self.graph.nodes[n].name.clone(), self.graph.inputs.len() + number);
                GraphInput { name, constant: false, captured: false, origin }
            }
        }
    }
}
