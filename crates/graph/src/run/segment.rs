//! A graph that plans can hold, with its plans by signature.

use super::build_turn::BuildTurn;
use super::call_plan::{CallPlan, DividedBatch};
use super::device_plan::DeviceConstants;
use super::explain::explain;
use super::plan_cache::{CallSignature, PlanCache};
use super::rows::{self, Division};
use crate::compile::InnerPlans;
use crate::compile::interrupt::Interrupter;
use crate::compile::options::BuildOptions;
use crate::compile::report::PlanReport;
use crate::ir::Graph;
use crate::passes;
use crate::plan::Plan;
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Engine, FailureKind, OpError, reserve};
use mxrt_ops::ConvSignature;
use mxrt_tensor::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// Memory that passes, and again a plan, take for each node, about.
pub(super) const MEMORY_PER_NODE: usize = 4 << 10;

/// Shapes of single rows for which the division of batches is remembered.
const MAX_DIVISIONS: usize = 64;

/// A graph, or a part of one, whose operators plans can all hold. Plans are built at the first call
/// of a signature.
pub(super) struct Segment {
    engine: &'static Engine,
    graph: Graph,
    /// positions of the inputs that are parameters, and of the others
    params: Vec<usize>,
    data: Vec<usize>,
    pub options: BuildOptions,
    plans: PlanCache,
    building: BuildTurn,
    divisions: Mutex<HashMap<CallSignature, Option<Division>>>,
    shared: InnerPlans,
    pub device_constants: DeviceConstants,
}

impl Segment {
    /// Takes a graph on which the passes that need no shapes have run.
    pub fn new(engine: &'static Engine, graph: Graph, options: BuildOptions) -> Segment {
        let (params, data) = (0..graph.inputs.len()).partition(|i| graph.inputs[*i].constant);
        Segment {
            engine,
            graph,
            params,
            data,
            options,
            plans: PlanCache::new(options.cache),
            building: BuildTurn::default(),
            divisions: Mutex::default(),
            shared: InnerPlans::default(),
            device_constants: DeviceConstants::default(),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Positions of the inputs that are not parameters.
    pub fn data(&self) -> &[usize] {
        &self.data
    }

    /// The plan for these types of all inputs.
    pub fn report(&self, types: &[TensorType]) -> Result<PlanReport, OpError> {
        Ok(self.plan_of_all(types, &mut Interrupter::never())?.report())
    }

    /// The distinct convolutions of the plan for these types of all inputs.
    pub fn convolutions(&self, types: &[TensorType]) -> Result<Vec<ConvSignature>, OpError> {
        let plan = self.plan_of_all(types, &mut Interrupter::never())?;
        Ok(plan.plans().iter().flat_map(|plan| plan.convolutions()).collect())
    }

    /// The plans.
    pub fn plans(&self) -> &PlanCache {
        &self.plans
    }

    /// Types of the parameters among these types of all inputs.
    pub fn param_types(&self, types: &[TensorType]) -> CallSignature {
        self.params.iter().map(|i| types[*i].clone()).collect()
    }

    /// The plan for these types of all inputs, if it has been built.
    pub fn find(&self, types: &[TensorType]) -> Option<Arc<CallPlan>> {
        if self.params.is_empty() {
            return self.plans.get(&[], types);
        }
        let data: CallSignature = self.data.iter().map(|i| types[*i].clone()).collect();
        self.plans.get(&self.param_types(types), &data)
    }

    /// The plan for these types of all inputs. `given` are the inputs whose arrays the call
    /// names: errors are about these. Building one may be given up.
    pub fn plan(
        &self,
        types: &[TensorType],
        given: &[usize],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Arc<CallPlan>, OpError> {
        if let Some(plan) = self.find(types) {
            return Ok(plan);
        }
        let built = {
            let _turn = self.building.take(interrupter)?;
            self.get_or_build(types, interrupter)
        };
        built.map_err(|error| explain(error, &self.graph, types, given))
    }

    /// The plan where a call names all inputs.
    pub fn plan_of_all(
        &self,
        types: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Arc<CallPlan>, OpError> {
        match self.find(types) {
            Some(plan) => Ok(plan),
            None => self.plan(types, &(0..types.len()).collect::<Vec<_>>(), interrupter),
        }
    }

    /// Called by the thread that has the turn to build.
    fn get_or_build(&self, types: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Arc<CallPlan>, OpError> {
        if let Some(plan) = self.find(types) {
            return Ok(plan);
        }
        let raw = self.graph.inputs.iter().zip(types).filter(|(i, _)| i.constant).map(|(_, t)| t.bytes()).sum();
        let plan = match self.divide(types, interrupter)? {
            Some((parts, outputs)) => CallPlan::parts(parts, outputs),
            None => CallPlan::whole(self.build(types, interrupter)?),
        };
        let plan = Arc::new(plan);
        let data: CallSignature = self.data.iter().map(|i| types[*i].clone()).collect();
        if self.plans.insert(&self.param_types(types), data, &plan, raw) {
            // The next plan wants blocks of other sizes: those of the old one are of no use.
            self.engine.memory().trim();
        }
        Ok(plan)
    }

    fn build(&self, types: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Plan, OpError> {
        reserve::check_room(self.graph.nodes.len().saturating_mul(MEMORY_PER_NODE))?;
        Plan::build(&self.graph, types, self.options, &self.shared, interrupter)
    }

    /// The parts of a batch that is better not run as a whole, and the types of its results.
    fn divide(
        &self,
        types: &[TensorType],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<(DividedBatch, Vec<TensorType>)>, OpError> {
        if !self.options.passes.runs(passes::DIVIDE_BATCH) {
            return Ok(None);
        }
        let Some((rows, divided)) = rows::batch(&self.graph, types, self.options.kernel)? else { return Ok(None) };
        let division = self.division(types, &divided, interrupter)?;
        let Some(division) = division.filter(|d| d.applies(rows)) else { return Ok(None) };
        let mut some = |n: usize| self.get_or_build(&rows::with_rows(types, &divided, n), interrupter);
        let part = some(division.each)?;
        let left = rows % division.each;
        let rest = if left > 0 { Some(some(left)?) } else { None };
        let outputs = rows::with_rows(part.outputs(), &vec![true; part.outputs().len()], rows);
        let Division { each, side_by_side } = division;
        Ok(Some((DividedBatch { rows, each, side_by_side, divided, part, rest }, outputs)))
    }

    /// Decides how batches of rows like these are divided, for inputs of at least two rows; none
    /// where rows depend on each other.
    pub fn rows(&self, types: &[TensorType]) -> Result<Option<Division>, OpError> {
        match rows::batch(&self.graph, types, self.options.kernel)? {
            Some((_, divided)) => self.division(types, &divided, &mut Interrupter::never()),
            None => Ok(None),
        }
    }

    /// How batches of rows like these are divided: decided once.
    fn division(
        &self,
        types: &[TensorType],
        divided: &[bool],
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Option<Division>, OpError> {
        let single: CallSignature = rows::with_rows(types, divided, 1).into();
        if let Some(known) = self.divisions.lock().get(&single) {
            return Ok(*known);
        }
        let mut cost = |types: &[TensorType]| match self.build(types, interrupter) {
            Ok(plan) => Ok(Some(plan.cost_ns())),
            Err(error) if error.kind == FailureKind::Cancelled => Err(error),
            // What cannot be built for other numbers of rows is not divided.
            Err(_) => Ok(None),
        };
        let division = match (cost(&single)?, cost(&rows::with_rows(types, divided, rows::TOGETHER))?) {
            (Some(one), Some(together)) => Some(Division::choose(one, together)),
            _ => None,
        };
        let mut divisions = self.divisions.lock();
        if divisions.len() >= MAX_DIVISIONS {
            divisions.clear();
        }
        divisions.insert(single, division);
        Ok(division)
    }
}
