//! A compiled graph: a list of stages.
//!
//! | stage | holds |
//! | --- | --- |
//! | `Plan` | nodes that plans can hold: a graph of its own with passes, constants, packed weights, and plans by signature |
//! | `DataDependent` | an operator whose shapes follow from contents: it looks at them, is bound to the true types and runs |
//! | `Callback` | an operator of the program: the call is handed over, and suspended until it is answered |
//! | `Flow` | a loop or a branch whose graphs hold such operators: an executable for each graph |
//!
//! Most graphs are one plan, whose calls write the results where they belong. The stages of others
//! run in order ([`cursor`]), as one op of the engine; values between stages have memory of their
//! own until their last reader. Loops and branches of other operators are steps of plans. Graphs on
//! several contexts or on sparse arrays take several ops ([`parts`](super::parts)).
//!
//! | question | answer |
//! | --- | --- |
//! | failures | a failed stage has no results; a plan computes what does not depend on them, if it knows their types |
//! | parameters | constants of each segment; expressions of them move into the segments and graphs that read them |
//! | random streams | one piece is drawn at the push; the draws of all stages follow from it |
//! | cancelling, deadlines | as for any call; looked at between stages and iterations too |
//! | states | what callbacks make of auxiliary states are further results, written back by ops after the request |

mod callback;
mod capture;
pub(super) mod cursor;
pub(super) mod cut;
mod flow;
mod flow_state;
pub(super) mod inputs;
mod output_types;
mod plan;
pub(super) mod stage_call;

use super::segment::Segment;
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::compile::report::PlanReport;
use crate::ir::{Graph, GraphNode, Types, Value};
use callback::CallbackStage;
use cut::{LastUses, Stage, StagePart, ValueSource, cut};
use flow::FlowStage;
use inputs::NodeSignature;
use mxrt_engine::{Engine, OpError, reserve};
use mxrt_ops::{ConvSignature, KernelOptions};
use mxrt_tensor::TensorType;
use output_types::NodeOutputs;
use std::collections::HashSet;
use std::sync::Arc;

/// A graph in stages.
pub(super) struct Executable {
    stages: Vec<Stage<StageKind>>,
    /// values that outlive their stage, by number
    values: Vec<Value>,
    last_uses: LastUses,
    outputs: Vec<ValueSource>,
    /// inputs of the whole graph that one stage alone reads
    read_once: HashSet<usize>,
    random: bool,
    options: KernelOptions,
}

enum StageKind {
    Plan(Arc<Segment>),
    DataDependent(GraphNode),
    Callback(CallbackStage),
    Flow(FlowStage),
}

impl Executable {
    /// The stages of a graph.
    pub fn new(engine: &'static Engine, graph: Graph, options: BuildOptions) -> Result<Executable, OpError> {
        let random = graph.nodes.iter().any(GraphNode::is_random);
        let input_count = graph.inputs.len();
        if !graph.nodes.iter().any(GraphNode::is_stage) {
            return Ok(Executable::whole(Segment::new(engine, graph, options), input_count, random));
        }
        let data_dependent = graph.nodes.iter().filter(|node| node.is_data_dependent()).count();
        // Each stands for a set of those before it, of one bit each.
        reserve::check_room(data_dependent.saturating_mul(data_dependent) / 4)?;
        let cut = cut(&graph);
        let stage = |Stage { kind, sources, makes }: Stage<StagePart>| {
            let kind = match kind {
                StagePart::Segment(graph, _) => StageKind::Plan(Arc::new(Segment::new(engine, graph, options))),
                StagePart::Operator(node) if node.flow.is_some() => {
                    StageKind::Flow(FlowStage::new(engine, node, options)?)
                }
                StagePart::Operator(node) => match node.callback() {
                    Some(callback) => StageKind::Callback(CallbackStage::new(node, callback)),
                    None => StageKind::DataDependent(node),
                },
            };
            Ok(Stage { kind, sources, makes })
        };
        let stages = cut.stages.into_iter().map(stage).collect::<Result<Vec<_>, OpError>>()?;
        let last_uses = LastUses::new(&stages, cut.values.len(), &cut.outputs);
        let read_once = read_once(&stages, &cut.outputs);
        let (values, outputs, options) = (cut.values, cut.outputs, options.kernel);
        Ok(Executable { stages, values, last_uses, outputs, read_once, random, options })
    }

    /// A graph that is one plan.
    fn whole(segment: Segment, inputs: usize, random: bool) -> Executable {
        let (values, options) = (segment.graph().outputs.clone(), segment.options.kernel);
        let (sources, makes) = ((0..inputs).map(ValueSource::Input).collect(), (0..values.len()).collect());
        let outputs: Vec<ValueSource> = (0..values.len()).map(ValueSource::Held).collect();
        let stages = vec![Stage { kind: StageKind::Plan(Arc::new(segment)), sources, makes }];
        let last_uses = LastUses::new(&stages, values.len(), &outputs);
        Executable { stages, values, last_uses, outputs, read_once: HashSet::new(), random, options }
    }

    /// The segments, in the order in which they run, with those inside of loops and branches.
    pub fn segments(&self) -> Vec<&Arc<Segment>> {
        let mut found = Vec::new();
        for stage in &self.stages {
            match &stage.kind {
                StageKind::Plan(segment) => found.push(segment),
                StageKind::Flow(flow) => found.extend(flow.bodies().flat_map(Executable::segments)),
                StageKind::DataDependent(_) | StageKind::Callback(_) => {}
            }
        }
        found
    }

    /// Whether a call draws from a random stream.
    pub fn is_random(&self) -> bool {
        self.random
    }

    /// Builds the plans whose signatures are known before a call: all of them with `types` of all
    /// values of the graph, else that of the first segment. Returns the estimated time of all.
    pub fn prepare(
        &self,
        inputs: &[TensorType],
        types: Option<&Types>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<u64, OpError> {
        let mut cost_ns = 0u64;
        for stage in &self.stages {
            let signature = self.types_of(stage, inputs, types);
            match (&stage.kind, types) {
                (StageKind::Plan(segment), _) => {
                    let Some(signature) = signature.into_iter().collect::<Option<Vec<TensorType>>>() else { continue };
                    let plan = segment.plan_of_all(&signature, interrupter)?;
                    cost_ns = cost_ns.saturating_add(plan.cost_ns());
                }
                (StageKind::Callback(stage_of), Some(types)) => {
                    stage_of.types().learn(signature, self.made(stage, types))
                }
                (StageKind::Flow(stage_of), Some(types)) => stage_of.types().learn(signature, self.made(stage, types)),
                _ => {}
            }
        }
        Ok(cost_ns)
    }

    /// Types of what a stage reads, as far as they are known.
    fn types_of(&self, stage: &Stage<StageKind>, inputs: &[TensorType], types: Option<&Types>) -> NodeSignature {
        let held = |value: usize| types?.get(&self.values[value]);
        stage.sources.iter().map(|source| source.find(|i| inputs.get(i), held).cloned()).collect()
    }

    /// Types of the outputs of the node that a stage is.
    fn made(&self, stage: &Stage<StageKind>, types: &Types) -> NodeOutputs {
        let outputs = match &stage.kind {
            StageKind::Flow(flow) => flow.types().node().num_outputs(),
            _ => stage.makes.len(),
        };
        stage.makes[..outputs].iter().map(|value| types.get(&self.values[*value]).cloned()).collect()
    }

    /// The convolutions of the plans that are known before a call.
    pub fn convolutions(&self, inputs: &[TensorType], types: Option<&Types>) -> Result<Vec<ConvSignature>, OpError> {
        let mut found = Vec::new();
        for stage in &self.stages {
            let signature = self.types_of(stage, inputs, types).into_iter().collect::<Option<Vec<TensorType>>>();
            if let (StageKind::Plan(segment), Some(signature)) = (&stage.kind, signature) {
                found.extend(segment.convolutions(&signature)?);
            }
        }
        Ok(found)
    }

    /// Reports what the stages do for these types of the graph's inputs, as far as it is known before
    /// a call.
    pub fn report(&self, inputs: &[TensorType], types: Option<&Types>) -> Result<PlanReport, OpError> {
        let mut report = PlanReport { title: "no plan yet".to_owned(), ..PlanReport::default() };
        let mut first = true;
        for stage in &self.stages {
            match &stage.kind {
                StageKind::Plan(segment) => match self.types_of(stage, inputs, types).into_iter().collect() {
                    Some(signature) => {
                        let signature: Vec<TensorType> = signature;
                        let part = segment.report(&signature)?;
                        if std::mem::take(&mut first) {
                            report.title.clone_from(&part.title);
                        }
                        report.append(part);
                    }
                    None => report.note(LATER_PLANS),
                },
                StageKind::Callback(stage) => report.note_stage(stage.types().node(), "in a thread of the program"),
                StageKind::Flow(stage) => report.note_stage(stage.types().node(), stage.describe()),
                StageKind::DataDependent(node) => report.note_stage(node, "by contents of its inputs"),
            }
        }
        Ok(report)
    }
}

/// Note of reports where plans follow from contents.
const LATER_PLANS: &str = "more segments are planned when operators whose shapes follow from contents have run";

/// Finds the inputs of the graph that one stage alone reads.
fn read_once(stages: &[Stage<StageKind>], outputs: &[ValueSource]) -> HashSet<usize> {
    let (mut seen, mut again) = (HashSet::new(), HashSet::new());
    let input = |source: &ValueSource| source.find(Some, |_| None);
    for stage in stages {
        // A loop reads its inputs once for each iteration.
        let often = matches!(stage.kind, StageKind::Flow(_));
        again.extend(stage.sources.iter().filter_map(input).filter(|input| !seen.insert(*input) || often));
    }
    again.extend(outputs.iter().filter_map(input));
    seen.difference(&again).copied().collect()
}
