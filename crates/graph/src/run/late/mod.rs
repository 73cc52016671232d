//! Graphs with operators whose outputs have shapes that follow from contents: a boolean mask, say.
//!
//! No plan can be built for what such an operator feeds before it has run. The graph is therefore
//! cut ([`cut`]): the operators become steps of their own, and the other nodes form segments. A
//! segment holds the nodes that depend on the same set of these operators. It is a graph as any
//! other, with passes, constants, packed weights, and plans by signature in a bounded cache; a size
//! that was met before costs no new plan.
//!
//! A call is one op of the engine ([`call`]). It runs the stages in order: a segment looks its
//! program up by the types that its inputs have by then, and writes its results into memory that
//! lasts until their last reader; a late operator looks at contents, is bound to the true types and
//! runs. The results are [`LateArray`]s: the call returns at once, and what asks for a shape waits.
//!
//! | question | answer |
//! | --- | --- |
//! | memory | values between stages, of their true sizes; arenas as in any plan |
//! | failures | where an operator fails, all of a segment that depends on it has no shape and inherits the failure; another branch goes on |
//! | wrong shapes | what is wrong whatever the contents are is an error of the call, the rest of the result |
//! | parameters | constants of each segment; expressions of them move into the segments that read them |
//! | random streams | one piece is drawn at the push; the draws of all segments follow from it |
//! | cancelling, deadlines | as for any call; looked at between stages too |
//!
//! The host runs such graphs. Late operators cannot stand inside loops and branches, as in MXNet.
//! Where an operator of the program (`Custom`) stands in a segment, the call is suspended as that of
//! a plan is; a plan whose types the program must be asked for is built in a thread of the program.

mod call;
mod cut;

use super::cached_op::CachedOp;
use crate::compile::build::BuildOptions;
use crate::compile::report::PlanReport;
use crate::ir::{Graph, GraphNode};
use cut::{Cut, Stage, ValueSource};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Engine, FailureKind, OpError, OpName};
use mxrt_ops::{Inputs, KernelOptions};
use mxrt_tensor::TensorType;
use std::collections::HashSet;
use std::sync::Arc;

pub use call::settle;

/// Signatures that are remembered to fit the graph.
const MAX_CHECKED: usize = 64;

/// A graph in stages.
pub(super) struct LateGraph {
    stages: Vec<LateStage>,
    /// by value that outlives its stage: the last stage that reads it
    last_use: Vec<usize>,
    outputs: Vec<ValueSource>,
    /// inputs of the whole graph that one stage alone reads
    read_once: HashSet<usize>,
    random: bool,
    asks_program: bool,
    options: KernelOptions,
    checked: Mutex<HashSet<super::plan_cache::CallSignature>>,
}

enum LateStage {
    Segment { op: Arc<CachedOp>, sources: Vec<ValueSource>, makes: Vec<usize> },
    Operator { node: GraphNode, sources: Vec<ValueSource>, makes: Vec<usize> },
}

impl LateStage {
    fn sources(&self) -> &[ValueSource] {
        match self {
            LateStage::Segment { sources, .. } | LateStage::Operator { sources, .. } => sources,
        }
    }

    fn makes(&self) -> &[usize] {
        match self {
            LateStage::Segment { makes, .. } | LateStage::Operator { makes, .. } => makes,
        }
    }
}

impl LateGraph {
    /// The stages of a graph; none if all its shapes follow from those of its inputs.
    pub fn new(
        engine: &'static Engine,
        name: &OpName,
        graph: &Graph,
        options: BuildOptions,
    ) -> Result<Option<LateGraph>, OpError> {
        let Some(Cut { stages, values, outputs }) = cut::cut(graph)? else { return Ok(None) };
        let updates = |node: &&GraphNode| {
            matches!(node.op.inputs, Inputs::Computed { .. }) && !node.op.states(&node.attrs).is_empty()
        };
        if let Some(custom) = graph.nodes.iter().find(updates) {
            let message = "operators of the program with auxiliary states cannot stand in one graph with operators \
                whose shapes follow from contents; split the graph between them";
            return Err(OpError::new(FailureKind::NotImplemented, message).op(custom.stands_for).node(&*custom.name));
        }
        let asks_program = graph.nodes.iter().any(GraphNode::asks_program);
        let random = graph.nodes.iter().any(GraphNode::is_random);
        let stage = |stage: Stage| match stage {
            Stage::Segment { graph, sources, makes } => {
                let op = CachedOp::of_graph(engine, name.clone(), graph, options);
                LateStage::Segment { op: Arc::new(op), sources, makes }
            }
            Stage::Operator { node, sources, makes } => LateStage::Operator { node, sources, makes },
        };
        let stages: Vec<LateStage> = stages.into_iter().map(stage).collect();
        let mut last_use = vec![0; values];
        let (mut seen, mut again) = (HashSet::new(), HashSet::new());
        for (s, stage) in stages.iter().enumerate() {
            for source in stage.sources() {
                match *source {
                    ValueSource::Held(value) => last_use[value] = s,
                    ValueSource::Input(input) if !seen.insert(input) => drop(again.insert(input)),
                    ValueSource::Input(_) => {}
                }
            }
        }
        for source in &outputs {
            match *source {
                ValueSource::Held(value) => last_use[value] = usize::MAX,
                ValueSource::Input(input) => drop(again.insert(input)),
            }
        }
        let read_once = seen.difference(&again).copied().collect();
        let (options, checked) = (options.kernel, Mutex::default());
        Ok(Some(LateGraph { stages, last_use, outputs, read_once, random, asks_program, options, checked }))
    }

    /// The compiled segments, in the order in which they run.
    pub fn segments(&self) -> impl Iterator<Item = &CachedOp> {
        self.stages.iter().filter_map(|stage| match stage {
            LateStage::Segment { op, .. } => Some(&**op),
            LateStage::Operator { .. } => None,
        })
    }

    /// What the stages before the first late operator do for these types of the graph's inputs.
    pub fn report(&self, types: &[TensorType]) -> Result<PlanReport, OpError> {
        let mut report = match self.first() {
            Some((first, inputs)) => first.plan(&inputs.iter().map(|i| types[*i].clone()).collect::<Vec<_>>())?,
            None => PlanReport { title: "no plan yet".to_owned(), ..PlanReport::default() },
        };
        report.notes.push("more segments are planned when operators whose shapes follow from contents have run");
        Ok(report)
    }

    /// The segment that reads inputs of the graph alone, with the inputs that it reads.
    pub fn first(&self) -> Option<(&CachedOp, Vec<usize>)> {
        let Some(LateStage::Segment { op, sources, .. }) = self.stages.first() else { return None };
        let input = |source: &ValueSource| match *source {
            ValueSource::Input(input) => Some(input),
            ValueSource::Held(_) => None,
        };
        Some((op, sources.iter().map(input).collect::<Option<_>>()?))
    }
}
