//! Operators that graph passes make; neither callable from Python nor loadable from files.

pub mod fold_batch_norm;
pub mod fused_attention;
pub mod fused_convolution;
pub mod fused_elementwise;
pub mod fused_fully_connected;
pub mod layer_norm_of_sum;
pub mod lines_fully_connected;
pub mod scale_shift;
pub mod to_lines;

use crate::nn::convolution_kernel::{Epilogue, FusedActivation};
use crate::prelude::*;

/// Attributes of everything that is fused after a layer.
const EPILOGUE_ATTRS: [AttrDef; 5] = [
    AttrDef::new("with_residual", AttrKind::Bool, "False", "The last input is added before the activation."),
    AttrDef::new("act_type", AttrKind::Enum(&["none", "relu", "clip", "leaky"]), "none", "Activation applied last."),
    AttrDef::new("act_min", AttrKind::Float, "0", "Lowest value of clip."),
    AttrDef::new("act_max", AttrKind::Float, "0", "Highest value of clip."),
    AttrDef::new("act_slope", AttrKind::Float, "0", "Factor of leaky below zero, between 0 and 1."),
];

/// The declarations of a layer followed by those of the epilogue.
pub(crate) const fn with_epilogue<const N: usize, const M: usize>(layer: [AttrDef; N]) -> [AttrDef; M] {
    let mut all = [layer[0]; M];
    let mut i = 0;
    while i < M {
        all[i] = if i < N { layer[i] } else { EPILOGUE_ATTRS[i - N] };
        i += 1;
    }
    all
}

/// The bias, residual and activation that the attributes name.
pub(crate) fn epilogue(attrs: &Attrs) -> Epilogue {
    let activation = match attrs.str("act_type") {
        "relu" => FusedActivation::Relu,
        "clip" => FusedActivation::Clip { low: attrs.float("act_min"), high: attrs.float("act_max") },
        "leaky" => FusedActivation::Leaky { slope: attrs.float("act_slope") },
        _ => FusedActivation::None,
    };
    Epilogue { bias: !attrs.bool("no_bias"), residual: attrs.bool("with_residual"), activation }
}

/// Inputs of a fused layer: bias and residual only where the attributes say so.
pub(crate) const INPUTS: Inputs = Inputs::ByAttrs(|attrs| match (attrs.bool("no_bias"), attrs.bool("with_residual")) {
    (true, false) => &["data", "weight"],
    (false, false) => &["data", "weight", "bias"],
    (true, true) => &["data", "weight", "residual"],
    (false, true) => &["data", "weight", "bias", "residual"],
});

/// Infers the layer, then gives the residual the shape of the output.
fn infer_with_residual(
    shapes: &mut Shapes<'_>,
    layer: fn(&mut Shapes<'_>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    layer(shapes)?;
    if let Some(at) = epilogue(shapes.attrs).residual_at() {
        let out: PartialShape = shapes.outputs[0].clone();
        let have = shapes.inputs[at].clone();
        shapes
            .set_input(at, "residual", out.clone())
            .map_err(|_| shape_error(format!("the array that is added has shape {have} but the layer gives {out}")))?;
        let residual = shapes.inputs[at].clone();
        shapes.set_output(0, residual)?;
    }
    Ok(())
}
