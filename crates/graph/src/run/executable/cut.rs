//! Cutting a graph into stages.
//!
//! Nodes of a level run together: they depend on the same data-dependent operators, and as many
//! callbacks stand one after the other before them. Operators that plans cannot hold come after the
//! nodes of their level, as stages of their own.

use super::capture::capture_constants;
use crate::ir::{Graph, GraphInput, GraphNode, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Source of a value that a stage reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::run) enum ValueSource {
    /// among the inputs of the whole graph
    Input(usize),
    /// among the values that outlive their stage, by number
    Held(usize),
    /// nowhere, as the stage does not read it
    Unread,
}

impl ValueSource {
    /// Finds something about the value, among the inputs or the values that are held.
    pub fn find<T>(self, input: impl FnOnce(usize) -> Option<T>, held: impl FnOnce(usize) -> Option<T>) -> Option<T> {
        match self {
            ValueSource::Input(i) => input(i),
            ValueSource::Held(value) => held(value),
            ValueSource::Unread => None,
        }
    }

    /// The number of a value that outlives its stage.
    pub fn held(self) -> Option<usize> {
        self.find(|_| None, Some)
    }
}

/// A part of a graph that runs as a whole, sources of its inputs, and the numbers of the values that
/// it makes and that outlive it.
pub(in crate::run) struct Stage<K> {
    pub kind: K,
    pub sources: Vec<ValueSource>,
    pub makes: Vec<usize>,
}

/// Contents of a stage of a graph that has been cut.
pub(in crate::run) enum StagePart {
    /// nodes whose shapes follow from those of the segment's inputs, and their place, by number
    Segment(Graph, usize),
    /// an operator that plans cannot hold
    Operator(GraphNode),
}

/// The last stage that reads each value, by number.
pub(in crate::run) struct LastUses(Vec<usize>);

impl LastUses {
    pub fn new<K>(stages: &[Stage<K>], values: usize, outputs: &[ValueSource]) -> LastUses {
        let mut last = vec![0; values];
        for (s, stage) in stages.iter().enumerate() {
            stage.sources.iter().filter_map(|source| source.held()).for_each(|value| last[value] = s);
        }
        outputs.iter().filter_map(|source| source.held()).for_each(|value| last[value] = usize::MAX);
        LastUses(last)
    }

    /// The values that nothing reads after the stage of this number, though it has read or made them.
    pub fn over<K>(&self, number: usize, stage: &Stage<K>) -> impl Iterator<Item = usize> {
        let read = stage.sources.iter().filter_map(|source| source.held());
        read.chain(stage.makes.iter().copied()).filter(move |value| self.0[*value] <= number)
    }
}

/// A graph in stages, in an order in which they can run.
pub(in crate::run) struct Cut {
    pub stages: Vec<Stage<StagePart>>,
    /// values that outlive their stage, by number
    pub values: Vec<Value>,
    pub outputs: Vec<ValueSource>,
}

/// Place of a level among all: how many data-dependent operators it depends on, which set of them,
/// and the callbacks before it.
type LevelKey = (u32, usize, usize);

/// The nodes of a level, and the operators that come after these.
#[derive(Default)]
struct Level {
    nodes: BTreeSet<usize>,
    operators: Vec<usize>,
}

/// Sets of data-dependent operators, by number; set 0 is empty.
struct OperatorSets {
    sets: Vec<Vec<u64>>,
    numbers: HashMap<Vec<u64>, usize>,
}

impl OperatorSets {
    fn new() -> OperatorSets {
        OperatorSets { sets: vec![Vec::new()], numbers: HashMap::from([(Vec::new(), 0)]) }
    }

    fn number(&mut self, set: Vec<u64>) -> usize {
        if let Some(known) = self.numbers.get(&set) {
            return *known;
        }
        self.sets.push(set.clone());
        self.numbers.insert(set, self.sets.len() - 1);
        self.sets.len() - 1
    }

    fn union(&mut self, a: usize, b: usize) -> usize {
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        let (a, b) = (&self.sets[a], &self.sets[b]);
        let word = |set: &[u64], i: usize| set.get(i).copied().unwrap_or(0);
        let both = (0..a.len().max(b.len())).map(|i| word(a, i) | word(b, i)).collect();
        self.number(both)
    }

    fn with(&mut self, set: usize, operator: usize) -> usize {
        let mut set = self.sets[set].clone();
        set.resize(set.len().max(operator / 64 + 1), 0);
        set[operator / 64] |= 1 << (operator % 64);
        self.number(set)
    }

    fn size(&self, set: usize) -> u32 {
        self.sets[set].iter().map(|word| word.count_ones()).sum()
    }
}

/// Cuts a graph at the operators that plans cannot hold.
pub(super) fn cut(graph: &Graph) -> Cut {
    let (levels, after) = levels(graph);
    let mut constant = graph.constant_nodes();
    for (constant, after) in constant.iter_mut().zip(after) {
        *constant &= after == (0, 0);
    }
    Cutter::new(graph, levels, constant).cut(GraphNode::is_stage)
}

/// Cuts a graph whose nodes have places, by number. A segment has the nodes of one place that come
/// after equally many changes of the place.
pub(in crate::run) fn cut_by_place(graph: &Graph, places: &[usize]) -> Cut {
    Cutter::new(graph, place_levels(graph, places), graph.constant_nodes()).cut(|_| false)
}

/// The place of the nodes that run on arrays as they are stored; others have place 0.
pub(in crate::run) const STORED: usize = 1;

/// Cuts a graph of which some nodes run on arrays as they are stored, which have the place [`STORED`].
/// No node is computed in several segments, as one that has a constant value may be elsewhere.
pub(in crate::run) fn cut_stored(graph: &Graph, stored: &[bool]) -> Cut {
    let places: Vec<usize> = stored.iter().map(|stored| if *stored { STORED } else { 0 }).collect();
    Cutter::new(graph, place_levels(graph, &places), vec![false; places.len()]).cut(|_| false)
}

fn place_levels(graph: &Graph, places: &[usize]) -> Vec<LevelKey> {
    let mut levels: Vec<LevelKey> = Vec::with_capacity(places.len());
    for (node, place) in graph.nodes.iter().zip(places) {
        let before = node.inputs.iter().filter_map(|value| value.node());
        let crossed = before.map(|m| levels[m].0 + u32::from(levels[m].2 != *place));
        levels.push((crossed.max().unwrap_or(0), 0, *place));
    }
    levels
}

struct Cutter<'a> {
    graph: &'a Graph,
    /// level of each node
    levels: Vec<LevelKey>,
    /// flag for each node: it computes with parameters alone
    constant: Vec<bool>,
    numbers: HashMap<Value, usize>,
    values: Vec<Value>,
}

impl<'a> Cutter<'a> {
    fn new(graph: &'a Graph, levels: Vec<LevelKey>, constant: Vec<bool>) -> Cutter<'a> {
        Cutter { graph, levels, constant, numbers: HashMap::new(), values: Vec::new() }
    }

    /// Cuts. Nodes that `is_stage` holds for are stages of their own.
    fn cut(mut self, is_stage: impl Fn(&GraphNode) -> bool) -> Cut {
        let graph = self.graph;
        let operators: HashMap<usize, GraphNode> = (0..graph.nodes.len())
            .filter(|n| is_stage(&graph.nodes[*n]))
            .map(|n| (n, capture_constants(graph, &self.constant, n)))
            .collect();
        let mut levels: BTreeMap<LevelKey, Level> = BTreeMap::new();
        levels.insert((0, 0, 0), Level::default());
        for n in 0..graph.nodes.len() {
            let level = levels.entry(self.levels[n]).or_default();
            if let Some(node) = operators.get(&n) {
                level.operators.push(n);
                for value in node.inputs_read() {
                    self.hold(value);
                }
            } else if !self.constant[n] {
                level.nodes.insert(n);
                self.hold_for(n, &operators);
            }
        }
        let outputs = graph.outputs.iter().map(|value| self.hold(*value)).collect();
        // What is made of parameters alone and outlives its stage is made in the first one.
        let made = self.values.iter().filter_map(|v| v.node()).filter(|n| self.constant[*n]).collect::<Vec<_>>();
        if let Some(mut first) = levels.first_entry() {
            first.get_mut().nodes.extend(made);
        }
        let mut stages = Vec::new();
        for ((.., place), Level { nodes, operators: after }) in levels {
            stages.extend(self.segment(place, &nodes));
            for n in after {
                stages.push(self.operator(n, operators[&n].clone()));
            }
        }
        Cut { stages, values: self.values, outputs }
    }

    /// The stage of a node that is one of its own.
    fn operator(&mut self, n: usize, node: GraphNode) -> Stage<StagePart> {
        let read: HashSet<Value> = node.inputs_read().collect();
        let source = |v: &Value| if read.contains(v) { self.source(*v) } else { ValueSource::Unread };
        let sources = node.inputs.iter().map(source).collect();
        let makes = (0..self.graph.nodes[n].values()).map(|o| Value::Node(n, o));
        let makes = makes.map(|value| self.number(value)).collect();
        Stage { kind: StagePart::Operator(node), sources, makes }
    }

    /// Holds what node `n` reads of other stages.
    fn hold_for(&mut self, n: usize, operators: &HashMap<usize, GraphNode>) {
        let graph = self.graph;
        for value in &graph.nodes[n].inputs {
            let Value::Node(m, _) = *value else { continue };
            let crosses = operators.contains_key(&m) || (!self.constant[m] && self.levels[m] != self.levels[n]);
            if crosses {
                self.hold(*value);
            }
        }
    }

    /// A value outlives its stage.
    fn hold(&mut self, value: Value) -> ValueSource {
        if let Value::Node(..) = value {
            self.number(value);
        }
        self.source(value)
    }

    fn number(&mut self, value: Value) -> usize {
        let values = &mut self.values;
        *self.numbers.entry(value).or_insert_with(|| {
            values.push(value);
            values.len() - 1
        })
    }

    fn source(&self, value: Value) -> ValueSource {
        match value {
            Value::Input(input) => ValueSource::Input(input),
            Value::Node(..) => ValueSource::Held(self.numbers[&value]),
        }
    }

    /// The graph of these nodes and of the constants that they read; none if no other stage reads
    /// what they make.
    fn segment(&self, place: usize, nodes: &BTreeSet<usize>) -> Option<Stage<StagePart>> {
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
                            made.inputs.push(self.input(other));
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
            for o in 0..self.graph.nodes[*n].values() {
                if let Some(value) = self.numbers.get(&Value::Node(*n, o)) {
                    made.outputs.push(Value::Node(moved[n], o));
                    makes.push(*value);
                }
            }
        }
        (!makes.is_empty()).then_some(Stage { kind: StagePart::Segment(made, place), sources, makes })
    }

    /// The input of a segment that stands for a value.
    fn input(&self, value: Value) -> GraphInput {
        match value {
            Value::Input(i) => self.graph.inputs[i].clone(),
            Value::Node(n, _) => {
                let name = self.graph.nodes[n].name.clone();
                let origin = self.graph.inputs.len() + self.numbers[&value];
                GraphInput { name, constant: false, captured: false, origin }
            }
        }
    }
}

/// Computes the level of each node, and set and depth of the nodes that read it.
fn levels(graph: &Graph) -> (Vec<LevelKey>, Vec<(usize, usize)>) {
    let mut sets = OperatorSets::new();
    let (mut levels, mut after): (Vec<LevelKey>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let mut data_dependent = 0;
    for node in &graph.nodes {
        let (mut set, mut depth) = (0, 0);
        for m in node.inputs.iter().filter_map(|value| value.node()) {
            set = sets.union(after[m].0, set);
            depth = depth.max(after[m].1);
        }
        levels.push((sets.size(set), set, depth));
        after.push(match (node.is_stage(), node.is_data_dependent()) {
            (true, true) => {
                data_dependent += 1;
                (sets.with(set, data_dependent - 1), depth)
            }
            (true, false) => (set, depth + 1),
            (false, _) => (set, depth),
        });
    }
    (levels, after)
}
