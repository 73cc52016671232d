//! `_to_lines`: rows put in the lines that tiles read.

use crate::prelude::*;
use mxrt_kernels::amx::Lines;
use mxrt_kernels::conv::Precision;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_to_lines",
    doc: "The rows of float32 in lines, for several products on tiles.",
    attrs: &[SIZE, PRECISION],
    infer_shape: |shapes| {
        let lines = lines(shapes.attrs, shapes.attrs.ints(SIZE.name))?;
        shapes.set_output(0, shape_of(lines))
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::U8),
    bind: |attrs, signature| {
        let lines = lines(attrs, attrs.ints(SIZE.name))?;
        Ok(kernel_fn(signature, move |call| {
            let ([x], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            lines.write(call.par, elements(x)?, elements_mut(out)?);
            Ok(())
        }))
    },
    internal: true,
    ..OpDef::BASE
}];

pub(super) const SIZE: AttrDef = AttrDef::required("size", AttrKind::Shape, "Rows and columns of data.");
pub(super) const PRECISION: AttrDef =
    AttrDef::required("precision", AttrKind::Enum(&["float32", "bf16"]), "Form of the numbers in lines.");

pub(super) fn size(given: &[i64]) -> Result<[usize; 2], OpError> {
    match *given {
        [rows, columns] if rows >= 0 && columns >= 0 => Ok([rows as usize, columns as usize]),
        _ => Err(value_error(format!("{given:?} is no size of a matrix: two numbers are needed"))),
    }
}

pub(super) fn lines(attrs: &Attrs, given: &[i64]) -> Result<Lines, OpError> {
    let [rows, columns] = size(given)?;
    let precision = if attrs.str(PRECISION.name) == "bf16" { Precision::Bf16 } else { Precision::Single };
    Ok(Lines::new(rows, columns, precision))
}

pub(super) fn shape_of(lines: Lines) -> Shape {
    Shape::new(&[lines.panels(), lines.panel_bytes()])
}
