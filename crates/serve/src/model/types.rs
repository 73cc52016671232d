//! Types of inputs and outputs.

use super::TensorInfo;
use super::settings::ModelSettings;
use mxrt_engine::OpError;
use mxrt_graph::Symbol;
use mxrt_tensor::{DType, NDArray, PartialShape};
use std::collections::HashMap;

/// Types that follow from the parameters and from what the user says.
pub(super) struct Types {
    inputs: HashMap<String, TensorInfo>,
    pub(super) outputs: Vec<TensorInfo>,
}

impl Types {
    pub(super) fn infer(
        symbol: &Symbol,
        params: &HashMap<String, NDArray>,
        free: &[&String],
        settings: &ModelSettings,
    ) -> Result<Types, OpError> {
        let extent = |extent: &i64| usize::try_from(*extent).ok();
        let said =
            settings.shapes.iter().map(|(name, s)| (name.clone(), PartialShape::from_dims(s.iter().map(extent))));
        let of_params = params.iter().map(|(name, array)| {
            let extents = array.shape().iter().copied().map(Some);
            (name.clone(), PartialShape::from_dims(extents))
        });
        let shapes = symbol.infer_shape(&of_params.chain(said).collect::<Vec<_>>(), true)?;
        let of_params = params.iter().map(|(name, array)| (name.clone(), array.dtype()));
        let known: Vec<(String, DType)> = of_params.chain(settings.dtypes.iter().cloned()).collect();
        let open = symbol.infer_type(&known, true)?;
        let arguments = symbol.list_arguments();
        let dtype_of: HashMap<&String, Option<DType>> = arguments.iter().zip(open.args.iter().copied()).collect();
        // What nothing asks for is float32, as everywhere in MXNet.
        let dtype = |name: &String| dtype_of.get(name).copied().flatten().unwrap_or(DType::F32);
        let all = known.iter().cloned().chain(free.iter().map(|name| ((*name).clone(), dtype(name))));
        let types = symbol.infer_type(&all.collect::<Vec<_>>(), true)?;
        let info = |name: &String, dtype: DType, shape: &PartialShape| TensorInfo {
            name: name.clone(),
            dtype,
            shape: shape.clone(),
        };
        let inputs = arguments.iter().zip(&shapes.args).map(|(name, s)| (name.clone(), info(name, dtype(name), s)));
        let outputs = symbol.list_outputs();
        let outputs = outputs.iter().zip(&shapes.outs).zip(&types.outs);
        Ok(Types {
            inputs: inputs.collect(),
            outputs: outputs.map(|((name, s), dtype)| info(name, dtype.unwrap_or(DType::F32), s)).collect(),
        })
    }

    pub(super) fn of(&self, name: &str) -> TensorInfo {
        let unknown = || TensorInfo { name: name.to_owned(), dtype: DType::F32, shape: PartialShape::UNKNOWN };
        self.inputs.get(name).cloned().unwrap_or_else(unknown)
    }
}
