//! The warning of operators that copy sparse arrays densely.

use super::StorageChoice as Choice;
use super::choice::result_storage;
use super::invoke::chosen;
use crate::definition::OpDef;
use crate::execution::CallAttrs;
use mxrt_tensor::{Context, NDArray, StorageType};

/// MXNet's warning, where a call copies sparse arrays densely because there is no kernel for them.
pub fn fallback_warning(
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    context: Context,
) -> Option<String> {
    let attrs = given.parse(def).ok()?;
    let choice = chosen(def, &attrs, inputs, outputs);
    if choice != Choice::Warned {
        return None;
    }
    let stored = |arrays: &[&NDArray]| arrays.iter().map(|a| a.storage_type()).collect::<Vec<_>>();
    let result = result_storage(def, &attrs, &stored(inputs), choice);
    let results = outputs.map_or_else(|| vec![result; def.num_outputs(&attrs)], stored);
    let scalar;
    let pairs = match given {
        CallAttrs::Text(pairs) => pairs,
        CallAttrs::Scalar(number) => {
            scalar = [("scalar".to_owned(), number.to_string())];
            &scalar
        }
    };
    Some(dense_copies_text(def, pairs, &stored(inputs), &results, context))
}

/// MXNet's warning of an operator with attributes as they were given, whose inputs and results are
/// stored so, on a context.
pub fn dense_copies_text(
    def: &OpDef,
    attrs: &[(String, String)],
    inputs: &[StorageType],
    results: &[StorageType],
    context: Context,
) -> String {
    let list = |stored: &[StorageType]| stored.iter().map(|storage| format!("{storage}, ")).collect::<String>();
    let params: String = attrs.iter().map(|(name, value)| format!("\"{name}\" : {value}, ")).collect();
    let device = if context.device().is_some() { "gpu" } else { "cpu" };
    format!(
        "\nStorage type fallback detected:\noperator = {}\ninput storage types = [{}]\noutput storage types = \
         [{}]\nparams = {{{params}}}\ncontext.dev_mask = {device}\nThe operator with default storage type will \
         be dispatched for execution. You're seeing this warning message because the operator above is unable to \
         process the given ndarrays with specified storage types, context and parameter. Temporary dense ndarrays are \
         generated in order to execute the operator. This does not affect the correctness of the programme. You can \
         set environment variable MXNET_STORAGE_FALLBACK_LOG_VERBOSE to 0 to suppress this warning.",
        def.name,
        list(inputs),
        list(results)
    )
}
