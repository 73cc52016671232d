//! Parts removed along an axis, and inserted: the places that indices and slices name.

pub mod delete;
pub mod insert;

use crate::prelude::*;

const START: AttrDef = AttrDef::new("start", AttrKind::OptInt, "None", "Start of a slice of indices.");
const STOP: AttrDef = AttrDef::new("stop", AttrKind::OptInt, "None", "End of a slice of indices.");
const STEP: AttrDef = AttrDef::new("step", AttrKind::OptInt, "None", "Step of a slice of indices.");
const INT_IND: AttrDef = AttrDef::new("int_ind", AttrKind::OptInt, "None", "One index.");
const AXIS: AttrDef = AttrDef::new("axis", AttrKind::OptInt, "None", "The axis; the flattened array if not given.");

fn like_first(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
    dtypes.set_input(0, "arr", dtype)?;
    dtypes.set_output(0, dtype)
}

/// Whether the attributes name the places, and not an array.
fn has_places(attrs: &Attrs) -> bool {
    attrs.opt_int("int_ind").is_some() || attrs.opt_int("step").is_some()
}

/// The index counted from the front; `limit` may be the number of elements itself.
fn place(index: i64, n: usize, limit: usize) -> Result<usize, OpError> {
    let front = if index < 0 { index.checked_add(n as i64) } else { Some(index) };
    front.and_then(|i| usize::try_from(i).ok()).filter(|i| *i <= limit).ok_or_else(|| out_of_bounds(index, n))
}

fn out_of_bounds(index: i64, n: usize) -> OpError {
    let message = format!("index {index} is out of bounds for an axis of size {n}");
    OpError::new(mxrt_engine::FailureKind::Index, message)
}

/// The indices that the slice or the one index among the attributes names, as Python counts, and
/// their number.
fn attribute_places(attrs: &Attrs, n: usize, limit: usize) -> Result<(impl Iterator<Item = usize>, usize), OpError> {
    let (start, step, count) = attribute_range(attrs, n, limit)?;
    Ok(((0..count as i64).map(move |i| (start + i * step) as usize), count))
}

/// The first index, the step and the number of these indices.
fn attribute_range(attrs: &Attrs, n: usize, limit: usize) -> Result<(i64, i64, usize), OpError> {
    if let Some(index) = attrs.opt_int("int_ind") {
        return Ok((place(index, n, limit)? as i64, 1, 1));
    }
    let (step, n) = (attrs.opt_int("step").unwrap_or(1), n as i64);
    if step == 0 {
        return Err(value_error("step must not be 0"));
    }
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let bound = |name: &str, default: i64| match attrs.opt_int(name) {
        Some(i) => (if i < 0 { i.saturating_add(n) } else { i }).clamp(low, high),
        None => default,
    };
    let (start, stop) =
        if step > 0 { (bound("start", 0), bound("stop", n)) } else { (bound("start", n - 1), bound("stop", -1)) };
    let span = if step > 0 { stop - start } else { start - stop };
    Ok((start, step, (span.max(0) as u64).div_ceil(step.unsigned_abs()) as usize))
}
