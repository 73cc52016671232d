//! Configuration of a model in the form that clients of Triton read.

use super::{Model, NamedTensor, PLATFORM};
use crate::protocol::Datatype;
use serde::Serialize;

/// Name of the backend in configurations.
const BACKEND: &str = "mxrt";

/// Input or output in a configuration.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigTensor {
    pub(crate) name: String,
    /// name of the element type, such as `TYPE_FP32`
    pub(crate) data_type: String,
    /// extents without that of the batch, where -1 is a free extent
    pub(crate) dims: Vec<i64>,
}

/// Configuration of a model.
#[derive(Debug, Serialize)]
pub(crate) struct ModelConfig {
    pub(crate) name: String,
    pub(crate) platform: &'static str,
    pub(crate) backend: &'static str,
    /// largest number of rows of a batch; 0: requests are not joined, and extents have no batch
    pub(crate) max_batch_size: i32,
    pub(crate) input: Vec<ConfigTensor>,
    pub(crate) output: Vec<ConfigTensor>,
}

impl ModelConfig {
    pub(crate) fn of(model: &Model) -> ModelConfig {
        let rows = model.most_rows();
        let tensor = |of: &NamedTensor| {
            let extents = of.extents();
            let dims = if rows.is_some() { extents.get(1..).unwrap_or_default().to_vec() } else { extents };
            ConfigTensor { name: of.name.clone(), data_type: data_type(of.datatype), dims }
        };
        ModelConfig {
            name: model.name.clone(),
            platform: PLATFORM,
            backend: BACKEND,
            max_batch_size: rows.map_or(0, |rows| i32::try_from(rows).unwrap_or(i32::MAX)),
            input: model.offered.inputs.iter().map(tensor).collect(),
            output: model.offered.outputs.iter().map(tensor).collect(),
        }
    }
}

/// Returns the name of an element type in configurations.
fn data_type(of: Datatype) -> String {
    match of {
        Datatype::Bytes => "TYPE_STRING".to_owned(),
        number => format!("TYPE_{}", number.name()),
    }
}
