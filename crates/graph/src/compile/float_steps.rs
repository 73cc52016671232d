//! Remarks on steps that compute floating-point numbers in a quantized network.

use crate::plan::Step;
use mxrt_ops::is_quantizable;
use mxrt_tensor::DType;

/// Number of steps that a remark names; it counts the others.
const NAMED: usize = 8;

/// Remarks on the layers of a quantized network that compute floating-point numbers, and on such
/// steps between layers of 8-bit integers: which they are, and why.
pub(super) fn notes(steps: &[Step]) -> Vec<String> {
    if !steps.iter().any(|step| step.stands_for.starts_with("_contrib_quantize")) {
        return Vec::new();
    }
    let last = steps.iter().rposition(has_bytes);
    let first = steps.iter().position(has_bytes);
    let is_between = |place: usize| first.is_some_and(|first| first < place) && last.is_some_and(|last| place < last);
    let of_floats = steps.iter().enumerate().filter(|(place, step)| {
        has_floats_alone(step) && (step.kernel.multiply_adds().is_some() || is_between(*place))
    });
    let (left, without): (Vec<&Step>, Vec<&Step>) =
        of_floats.map(|(_, step)| step).partition(|step| is_quantizable(step.stands_for));
    let note = |steps: &[&Step], why: &str| {
        (!steps.is_empty()).then(|| format!("in floating-point numbers, because {why}: {}", names(steps)))
    };
    let without = note(&without, "MXNet has no 8-bit form of the operator");
    let left =
        note(&left, "the graph does not quantize the layer, which was excluded or is of a kind that MXNet leaves");
    without.into_iter().chain(left).collect()
}

/// Returns whether a step reads or writes 8-bit integers.
fn has_bytes(step: &Step) -> bool {
    types(step).any(|dtype| matches!(dtype, DType::I8 | DType::U8))
}

/// Returns whether a step computes, and neither reads nor writes integers.
fn has_floats_alone(step: &Step) -> bool {
    let changes_layout = step.op.starts_with("_to_") || step.op.starts_with("_from_");
    !changes_layout && types(step).all(DType::is_float)
}

fn types(step: &Step) -> impl Iterator<Item = DType> {
    step.inputs.iter().chain(&step.outputs).map(|operand| operand.tensor.dtype)
}

fn names(steps: &[&Step]) -> String {
    let named = steps.iter().take(NAMED).map(|step| format!("{} ({})", step.name, step.stands_for));
    let more = steps.len().saturating_sub(NAMED);
    named.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}
