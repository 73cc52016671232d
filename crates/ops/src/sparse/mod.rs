//! Operators on sparse arrays: storage types of results, as MXNet infers them, and kernels.
//!
//! The table below has a row for each family of operators that know sparse arrays. What has no row,
//! or whose row says so, gets dense copies of its inputs. The shapes, element types and attributes of
//! an operator are those of its definition, whatever the storage.

mod call;
pub mod cast;
mod choice;
mod dot;
mod elementwise;
mod fallback;
mod invoke;
mod lookup;
pub mod reduce;
pub mod rows;
pub mod scatter;
mod stored_call;

pub use choice::{StorageChoice, choose_storage, knows_storage, makes_sparse, result_storage};
pub use fallback::{dense_copies_text, fallback_warning};
pub use invoke::{convert_into, invoke_again, invoke_stored, to_storage};
pub use stored_call::LastStoredCall;

use crate::definition::Attrs;
use StorageChoice as Choice;
use call::SparseCall;
use mxrt_engine::OpError;
use mxrt_tensor::{StorageType, StoredOutput, TensorType};

/// Operators that know sparse arrays.
struct SparseFamily {
    /// canonical names
    names: &'static [&'static str],
    /// the storage of the result
    choose: fn(&Query<'_>) -> Choice,
    /// makes the result
    run: fn(&SparseCall<'_>, &mut StoredOutput<'_>) -> Result<(), OpError>,
}

/// Facts that the storage of a result depends on.
struct Query<'a> {
    name: &'static str,
    attrs: &'a Attrs,
    /// storage types of the inputs
    stored: &'a [StorageType],
    /// types of the inputs
    types: &'a [TensorType],
    /// storage type of the array of `out=`
    wanted: Option<StorageType>,
}

static FAMILIES: &[&SparseFamily] = &[
    &cast::FAMILY,
    &cast::TYPES,
    &elementwise::UNARY,
    &elementwise::ZEROS,
    &elementwise::WITH_NUMBER,
    &elementwise::BINARY,
    &elementwise::PRODUCT,
    &elementwise::BROADCAST,
    &scatter::FAMILY,
    &dot::DOT,
    &dot::DENSE_LAYER,
    &reduce::SUMS,
    &reduce::NORM,
    &reduce::SQUARES,
    &reduce::COUNT,
    &rows::SLICE,
    &rows::RETAIN,
    &rows::CONCAT,
    &rows::SUM_OF_ARRAYS,
    &lookup::EMBEDDING,
    &lookup::WHERE,
    &lookup::TAKE,
];

fn family(name: &str) -> Option<&'static SparseFamily> {
    FAMILIES.iter().copied().find(|family| family.names.contains(&name))
}
