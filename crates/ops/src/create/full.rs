//! `_zeros`, `_ones`, `_full`: one value everywhere.

use super::{CTX, DTYPE, dtype_from_attr, shape_from_attr};
use crate::math::identity::{bind_fill, fill_form};
use crate::prelude::*;

const CONSTANT: OpDef = OpDef {
    inputs: Inputs::Fixed(&[]),
    attrs: &[AttrDef::new("shape", AttrKind::Shape, "()", "Shape of the result."), CTX, DTYPE],
    infer_shape: shape_from_attr,
    infer_dtype: dtype_from_attr,
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_zeros",
        doc: "An array of zeros.",
        bind: |_, signature| bind_fill(0.0, signature),
        form: |_, signature| fill_form(0.0, signature),
        ..CONSTANT
    },
    OpDef {
        name: "_zeros_without_dtype",
        doc: "An array of float32 zeros.",
        attrs: &[
            AttrDef::new("shape", AttrKind::Shape, "None", "Shape of the result."),
            CTX,
            AttrDef::new("dtype", AttrKind::Int, "-1", "Code of a dtype; float32 if not given."),
        ],
        infer_dtype: |dtypes| {
            let code = i32::try_from(dtypes.attrs.int("dtype")).unwrap_or(i32::MAX);
            let dtype = if code == -1 { Some(mxrt_tensor::DType::F32) } else { mxrt_tensor::DType::from_code(code) };
            match dtype {
                Some(dtype) => dtypes.set_output(0, dtype),
                None => Err(type_error(format!("dtype {code} is not the code of a dtype"))),
            }
        },
        bind: |_, signature| bind_fill(0.0, signature),
        form: |_, signature| fill_form(0.0, signature),
        ..CONSTANT
    },
    OpDef {
        name: "_ones",
        doc: "An array of ones.",
        bind: |_, signature| bind_fill(1.0, signature),
        form: |_, signature| fill_form(1.0, signature),
        ..CONSTANT
    },
    OpDef {
        name: "_full",
        aliases: &["_npi_full"],
        doc: "An array of one value.",
        attrs: &[
            AttrDef::new("shape", AttrKind::Shape, "None", "Shape of the result."),
            CTX,
            DTYPE,
            AttrDef::required("value", AttrKind::Float, "The value.").wide(),
        ],
        bind: |attrs, signature| bind_fill(attrs.float("value"), signature),
        form: |attrs, signature| fill_form(attrs.float("value"), signature),
        ..CONSTANT
    },
];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_tensor::{NpShapeScope, set_np_shape_scope};

    #[test]
    fn constants_have_shape_and_dtype_as_asked() {
        assert_eq!(f32s(&OpTest::new("_ones").attr("shape", "(2,)").run(), [2]), [1.0, 1.0]);
        let y = OpTest::new("_full").attr("shape", "3").attr("value", "2.75").attr("dtype", "int32").run();
        assert_eq!(y.values::<i32>(), [2, 2, 2]);
        OpTest::new("_zeros").attr("shape", "(2, -3)").error();
        OpTest::new("_zeros").attr("shape", "(0, 2)").error();
    }

    #[test]
    fn under_numpys_shapes_zero_is_an_extent_and_no_axes_are_a_scalar() {
        let shape = |text: &str| OpTest::new("_zeros").attr("shape", text).run().tensor.shape.to_vec();
        set_np_shape_scope(NpShapeScope::Thread);
        let full = || OpTest::new("_npi_full").attr("shape", "()").attr("value", "2").run().values::<f32>();
        let made = std::panic::catch_unwind(|| (shape("()"), shape("(0, 3)"), full()));
        set_np_shape_scope(NpShapeScope::Off);
        assert_eq!(made.ok(), Some((vec![], vec![0, 3], vec![2.0])));
    }
}
