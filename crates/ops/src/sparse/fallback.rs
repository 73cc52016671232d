//! The warning of operators that copy sparse arrays densely.

use super::Choice;
use super::invoke::chosen;
use crate::definition::OpDef;
use crate::execution::CallAttrs;
use mxrt_tensor::{Context, NDArray};

/// MXNet's warning, where a call copies sparse arrays densely because there is no kernel for them.
pub fn fallback_warning(
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    context: Context,
) -> Option<String> {
    let attrs = given.parse(def).ok()?;
    if chosen(def, &attrs, inputs, outputs) != Choice::Warned {
        return None;
    }
    let list = |arrays: &[&NDArray]| arrays.iter().map(|a| format!("{}, ", a.storage_type())).collect::<String>();
    let results = outputs.map_or_else(|| "default, ".repeat(def.num_outputs(&attrs)), list);
    let params: String = attrs.pairs().iter().map(|(name, value)| format!("\"{name}\" : {value}, ")).collect();
    let device = if context.device().is_some() { "gpu" } else { "cpu" };
    Some(format!(
        "\nStorage type fallback detected:\noperator = {}\ninput storage types = [{}]\noutput storage types = \
         [{results}]\nparams = {{{params}}}\ncontext.dev_mask = {device}\nThe operator with default storage type will \
         be dispatched for execution. You're seeing this warning message because the operator above is unable to \
         process the given ndarrays with specified storage types, context and parameter. Temporary dense ndarrays are \
         generated in order to execute the operator. This does not affect the correctness of the programme. You can \
         set environment variable MXNET_STORAGE_FALLBACK_LOG_VERBOSE to 0 to suppress this warning.",
        def.name,
        list(inputs)
    ))
}
