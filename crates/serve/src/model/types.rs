//! Types of a model's inputs and outputs.

use super::{TensorInfo, bad};
use crate::settings::ModelSettings;
use mxrt_engine::{OpError, WrongInput};
use mxrt_graph::Symbol;
use mxrt_tensor::{DType, NDArray, PartialShape};
use std::collections::HashMap;

/// Returns the error for an input whose type in the settings is not the one that the graph
/// requires.
fn wrong_dtype(symbol: &Symbol, of_params: &[(String, DType)], settings: &ModelSettings) -> Option<OpError> {
    let asked = symbol.infer_type(of_params, true).ok()?;
    let asked: HashMap<String, Option<DType>> = symbol.list_arguments().into_iter().zip(asked.args).collect();
    let differs = |(name, got): &(String, DType)| {
        let wanted = asked.get(name).copied().flatten().filter(|wanted| wanted != got)?;
        Some((name.clone(), *got, wanted))
    };
    let (name, got, wanted) = settings.dtypes.iter().find_map(differs)?;
    let mut error = bad(format!("input '{name}': got {got}, wanted {wanted}"));
    error.input = Some(WrongInput { name, got: Some(got.to_string()), wanted: Some(wanted.to_string()) });
    Some(error)
}

/// Types of inputs and outputs, inferred from the parameters and the settings.
pub(super) struct ModelTypes {
    inputs: HashMap<String, TensorInfo>,
    pub(super) outputs: Vec<TensorInfo>,
}

impl ModelTypes {
    pub(super) fn infer(
        symbol: &Symbol,
        params: &HashMap<String, NDArray>,
        free: &[&String],
        settings: &ModelSettings,
    ) -> Result<ModelTypes, OpError> {
        let extent = |extent: &i64| usize::try_from(*extent).ok();
        let said =
            settings.shapes.iter().map(|(name, s)| (name.clone(), PartialShape::from_dims(s.iter().map(extent))));
        let of_params = params.iter().map(|(name, array)| {
            let extents = array.shape().iter().copied().map(Some);
            (name.clone(), PartialShape::from_dims(extents))
        });
        let shapes = symbol.infer_shape(&of_params.chain(said).collect::<Vec<_>>(), true)?;
        let of_params: Vec<(String, DType)> =
            params.iter().map(|(name, array)| (name.clone(), array.dtype())).collect();
        let known: Vec<(String, DType)> = of_params.iter().cloned().chain(settings.dtypes.iter().cloned()).collect();
        let open = symbol
            .infer_type(&known, true)
            .map_err(|error| wrong_dtype(symbol, &of_params, settings).unwrap_or_else(|| error.into()))?;
        let arguments = symbol.list_arguments();
        let dtype_of: HashMap<&String, Option<DType>> = arguments.iter().zip(open.args.iter().copied()).collect();
        // A type that nothing determines is float32, as everywhere in MXNet.
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
        Ok(ModelTypes {
            inputs: inputs.collect(),
            outputs: outputs.map(|((name, s), dtype)| info(name, dtype.unwrap_or(DType::F32), s)).collect(),
        })
    }

    pub(super) fn of(&self, name: &str) -> TensorInfo {
        let unknown = || TensorInfo { name: name.to_owned(), dtype: DType::F32, shape: PartialShape::UNKNOWN };
        self.inputs.get(name).cloned().unwrap_or_else(unknown)
    }
}
