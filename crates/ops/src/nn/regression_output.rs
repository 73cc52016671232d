//! `LinearRegressionOutput`, `MAERegressionOutput`, `LogisticRegressionOutput`: losses that are
//! simple functions at inference.

use crate::math::{bind_unary, unary_form};
use crate::prelude::*;
use crate::shape::bind_copy;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "LinearRegressionOutput",
        aliases: &["_sparse_LinearRegressionOutput"],
        doc: "At inference data unchanged; label does not matter.",
        rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
        ..REGRESSION
    },
    OpDef {
        name: "MAERegressionOutput",
        aliases: &["_sparse_MAERegressionOutput"],
        doc: "At inference data unchanged; label does not matter.",
        rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
        ..REGRESSION
    },
    OpDef {
        name: "LogisticRegressionOutput",
        aliases: &["_sparse_LogisticRegressionOutput"],
        doc: "At inference the logistic function of data; label does not matter.",
        bind: |_, signature| {
            let data_only =
                Signature { inputs: &signature.inputs[..1], outputs: signature.outputs, options: signature.options };
            bind_unary(Unary::Sigmoid, &data_only)
        },
        form: |_, signature| unary_form(Unary::Sigmoid, signature),
        rewrites: &Rewrites { row_wise: |_, _, divided| divided.first() == Some(&true), ..Rewrites::NONE },
        ..REGRESSION
    },
];

const REGRESSION: OpDef = OpDef {
    inputs: Inputs::Fixed(&["data", "label"]),
    attrs: &[AttrDef::new("grad_scale", AttrKind::Float, "1", "For training.")],
    ignores_unknown_attrs: true,
    infer_shape: regression_shapes,
    bind: bind_copy,
    ..OpDef::BASE
};

/// A label has as many elements as the data and the same batch size.
fn regression_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(data) = shapes.input(0) else { return Ok(()) };
    match shapes.inputs[1].complete() {
        None => {
            let column = data.len() == 2 && data[1] == 1;
            let label = if column && shapes.rank(1) != Some(2) { data[..1].into() } else { data };
            shapes.set_input(1, "label", label)
        }
        Some(label) if label.first() == data.first() && label.checked_size() == data.checked_size() => Ok(()),
        Some(label) => Err(shape_error(format!("label has shape {label} but input {data} needs as many elements"))),
    }
}
