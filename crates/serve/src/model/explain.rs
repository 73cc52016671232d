//! Errors of loading, told in terms of settings: which input, what it got from which setting, and
//! what the model wants. A call of the model finds that out, so it is made here with the types that
//! the settings give.

use super::{GraphArgument, bad};
use crate::settings::ModelSettings;
use mxrt_engine::{Engine, OpError};
use mxrt_graph::{BoundOp, CallOptions, Interrupter};
use mxrt_tensor::{Context, DType, NDArray, Shape, TensorType};

/// Returns the error with the setting that caused it, or unchanged if none did.
pub(super) fn by_setting(error: OpError, settings: &ModelSettings) -> OpError {
    let Some(input) = &error.input else { return error };
    let (Some(got), Some(wanted)) = (&input.got, &input.wanted) else { return error };
    let key = if got.parse::<DType>().is_ok() { "dtypes" } else { "shapes" };
    let of_key = match key {
        "dtypes" => settings.dtypes.iter().any(|(name, _)| *name == input.name),
        _ => settings.shapes.iter().any(|(name, _)| *name == input.name),
    };
    let Some(by) = settings.said_by(key).filter(|_| of_key) else { return error };
    let advice = match key {
        "dtypes" => format!("leave it out, or say {wanted}"),
        _ => format!("say {wanted}, or -1 for what is free"),
    };
    // A call puts the description by the failed node after its own text.
    let fact = error.message.split_once(". ").map_or(String::new(), |(_, fact)| format!(". {fact}"));
    bad(format!("input '{}': got {got} ({by}), wanted {wanted}: {advice}{fact}", input.name))
}

/// Names the origin of a setting in an error that begins with its key, such as `labels: ...`.
pub(super) fn with_origin(mut error: OpError, settings: &ModelSettings) -> OpError {
    let origin = error.message.split_once(": ").and_then(|(key, words)| Some((settings.said_by(key)?, words)));
    if let Some((by, words)) = origin {
        error.message = format!("{by}: {words}");
    }
    error
}

/// Returns the error of a call with arrays of the types and shapes in the settings. Returns `None`
/// if the call succeeds, or if the settings do not give all shapes.
pub(super) fn of_call(
    engine: &'static Engine,
    bound: &BoundOp,
    arguments: &[GraphArgument],
    inputs: &[String],
    settings: &ModelSettings,
) -> Option<OpError> {
    let array = |argument: &GraphArgument| {
        let GraphArgument::Input(number) = *argument else { return None };
        let name = &inputs[number];
        let (_, extents) = settings.shapes.iter().find(|(said, _)| said == name)?;
        let extents: Vec<usize> = extents.iter().map(|extent| usize::try_from(*extent).unwrap_or(1)).collect();
        let dtype = settings.dtypes.iter().find(|(said, _)| said == name).map_or(DType::F32, |(_, dtype)| *dtype);
        NDArray::new(engine, Context::cpu(0), TensorType::new(dtype, Shape::from(extents))).ok()
    };
    let arrays: Vec<NDArray> = arguments.iter().map(array).collect::<Option<_>>()?;
    bound.call(&arrays.iter().collect::<Vec<_>>(), None, &CallOptions::default(), &mut Interrupter::never()).err()
}
