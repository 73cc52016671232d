//! Storage types of results, as MXNet infers them, for calls and for graphs.

use super::{Query, family};
use crate::definition::{Attrs, OpDef};
use crate::execution::CallAttrs;
use mxrt_tensor::{NDArray, StorageType, TensorType};

/// The operators with an attribute that names the storage of the result.
const CAST: &str = "cast_storage";
const PRODUCT: &str = "dot";

/// Treatment of an operator with inputs of these storage types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageChoice {
    /// A kernel for sparse arrays runs, and its result is stored so.
    Kernel(StorageType),
    /// The inputs are copied densely: MXNet does without a warning.
    Dense,
    /// The inputs are copied densely, and MXNet warns.
    Warned,
    /// There is neither a kernel nor a dense result of use.
    Refused(&'static str),
}

/// Decides what happens to an operator. `wanted` is the storage type of the array of `out=`.
pub fn choose_storage(
    def: &OpDef,
    attrs: &Attrs,
    stored: &[StorageType],
    types: &[TensorType],
    wanted: Option<StorageType>,
) -> StorageChoice {
    let sparse = stored.iter().any(|s| s.is_sparse());
    let knows = sparse || def.name == CAST || makes_sparse(def, attrs);
    match family(def.name) {
        Some(family) if knows && stored.len() == def.num_inputs(attrs) => {
            (family.choose)(&Query { name: def.name, attrs, stored, types, wanted })
        }
        _ if sparse => StorageChoice::Warned,
        // Only the array of `out=` is sparse: a dense result is converted.
        _ => StorageChoice::Dense,
    }
}

/// The storage type of the result of an operator on inputs of these storage types, unless an array of
/// `out=` says otherwise.
pub fn result_storage(def: &OpDef, attrs: &Attrs, stored: &[StorageType], choice: StorageChoice) -> StorageType {
    asked_storage(def, attrs).unwrap_or(match choice {
        StorageChoice::Kernel(storage) => storage,
        StorageChoice::Warned if is_by_transposed_csr(def, attrs, stored) => StorageType::Csr,
        _ => StorageType::Default,
    })
}

/// Whether an operator is the product of a dense matrix and a transposed csr one, which MXNet computes
/// densely and stores as csr.
fn is_by_transposed_csr(def: &OpDef, attrs: &Attrs, stored: &[StorageType]) -> bool {
    let matrices = stored == [StorageType::Default, StorageType::Csr];
    def.name == PRODUCT && matrices && attrs.bool("transpose_b") && !attrs.bool("transpose_a")
}

/// Whether an operator stores its result sparsely on whatever inputs, as its attributes ask for.
pub fn makes_sparse(def: &OpDef, attrs: &Attrs) -> bool {
    let cast = || (def.name == CAST).then(|| StorageType::from_name(attrs.str("stype"))).flatten();
    asked_storage(def, attrs).or_else(cast).is_some_and(StorageType::is_sparse)
}

/// Whether a call has to do with sparse arrays.
pub fn knows_storage(def: &OpDef, given: CallAttrs<'_>, inputs: &[&NDArray], outputs: Option<&[&NDArray]>) -> bool {
    let any = |arrays: &[&NDArray]| arrays.iter().any(|array| array.is_sparse());
    // A product without this attribute has a dense result of dense arrays.
    let asks = || def.name == PRODUCT && given.names("forward_stype");
    any(inputs) || outputs.is_some_and(any) || def.name == CAST || asks()
}

/// The storage that `forward_stype` of a product names.
fn asked_storage(def: &OpDef, attrs: &Attrs) -> Option<StorageType> {
    (def.name == PRODUCT).then(|| attrs.opt_str("forward_stype").and_then(StorageType::from_name)).flatten()
}
