//! The stage that is a plan: a segment of the graph, with the plan for the types that its inputs
//! have by now.

use super::inputs::HeldValue;
use super::stage_call::{StageCall, StageEnd};
use crate::compile::interrupt::Interrupter;
use crate::memory::constants::allocate;
use crate::plan::{NestedSite, PlanRequest};
use crate::run::call_plan::{BatchCursor, CallPlan, GroupEnd};
use crate::run::segment::Segment;
use mxrt_engine::OpError;
use mxrt_engine::memory::Block;
use mxrt_ops::RandomKey;
use mxrt_tensor::TensorMut;
use smallvec::SmallVec;
use std::sync::Arc;

/// A large batch between two of its parts.
pub(super) struct OpenPlan {
    plan: Arc<CallPlan>,
    blocks: Vec<Block>,
    cursor: BatchCursor,
}

/// Runs a segment, or the next parts of a large batch.
pub(super) fn run(
    segment: &Segment,
    call: &StageCall<'_>,
    open: Option<OpenPlan>,
) -> Result<StageEnd<OpenPlan>, OpError> {
    let mut open = match open {
        Some(open) => open,
        None => begin(segment, call)?,
    };
    // Raw weights that another stage reads as well stay.
    let released = |input: usize| call.inputs.graph_input(input).filter(|i| call.read_once.contains(i));
    let site = NestedSite { outer: call.request.site, released: &released };
    let draws = open.plan.random_draws() as u64;
    let random: SmallVec<[RandomKey; 2]> = (0..draws).filter_map(|draw| call.key(draw)).collect();
    let end = {
        let made = open.plan.outputs().iter();
        let mut outputs: SmallVec<[TensorMut<'_>; 2]> = made
            .zip(&mut open.blocks)
            .map(|(t, block)| TensorMut::new(t.dtype, &t.shape, &mut block.as_mut_slice()[..t.bytes()]))
            .collect();
        let request = PlanRequest { site: &site, inputs: call.inputs, random: &random };
        open.plan.run_group(call.request.engine, &mut open.cursor, &request, &mut outputs)?
    };
    let missing = match end {
        GroupEnd::Again => return Ok(StageEnd::Again(open)),
        GroupEnd::Done(missing) => missing,
    };
    let made = open.plan.outputs().iter().cloned();
    let mut values: Vec<HeldValue> = made.zip(open.blocks).map(|(t, block)| HeldValue::new(t, block)).collect();
    for (output, failure) in missing {
        values[output].content = Err(failure);
    }
    Ok(StageEnd::Done(values))
}

fn begin(segment: &Segment, call: &StageCall<'_>) -> Result<OpenPlan, OpError> {
    let types = call.inputs.all_types();
    let plan = segment.plan_of_all(&types, &mut Interrupter::never())?;
    let memory = call.request.site.memory();
    let blocks = plan.outputs().iter().map(|t| allocate(memory, t.bytes())).collect::<Result<_, OpError>>()?;
    Ok(OpenPlan { plan, blocks, cursor: BatchCursor::default() })
}
