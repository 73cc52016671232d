//! `_lines_fully_connected`: products on tiles whose rows stay in lines between layers.

use super::fused_elementwise::FusedChain;
use super::to_lines::{PRECISION, SIZE, lines, shape_of, size};
use super::{INPUTS, epilogue, with_epilogue};
use crate::nn::fully_connected;
use crate::nn::fully_connected_kernel::{DenseForm, bind_dense_in_lines};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_lines_fully_connected",
    doc: "A dense layer on tiles that reads its data in lines, or leaves its result in lines.",
    inputs: INPUTS,
    attrs: ATTRS,
    infer_shape: |shapes| {
        let attrs = shapes.attrs;
        if !attrs.bool(TO.name) {
            let shape = attrs.ints(SHAPE.name).iter().map(|n| *n as usize).collect::<Vec<_>>();
            return shapes.set_output(0, Shape::new(&shape));
        }
        let outputs = attrs.count("num_hidden") as i64;
        let rows = attrs.ints(SIZE.name).first().copied().unwrap_or(0);
        shapes.set_output(0, shape_of(lines(attrs, &[rows, outputs])?))
    },
    infer_dtype: |dtypes| {
        let result = if dtypes.attrs.bool(TO.name) { DType::U8 } else { DType::F32 };
        dtypes.set_output(0, result)
    },
    bind: |attrs, signature| {
        let [rows, inputs] = size(attrs.ints(SIZE.name))?;
        let form = DenseForm {
            size: [rows, inputs, attrs.count("num_hidden")],
            from_lines: attrs.bool(FROM.name),
            to_lines: attrs.bool(TO.name),
        };
        let program = attrs.str("program");
        let chain = (!program.is_empty()).then(|| FusedChain::of_one(program)).transpose()?;
        bind_dense_in_lines(signature, form, epilogue(attrs), chain)
    },
    internal: true,
    ..OpDef::BASE
}];

const FROM: AttrDef = AttrDef::new("from_lines", AttrKind::Bool, "False", "Whether data is in lines.");
const TO: AttrDef = AttrDef::new("to_lines", AttrKind::Bool, "False", "Whether the result is in lines.");
const SHAPE: AttrDef = AttrDef::required("shape", AttrKind::Shape, "Shape of the result that is not in lines.");

static ATTRS: &[AttrDef] = &with_epilogue::<9, 14>({
    let [outputs, bias, flatten] = fully_connected::ALL_ATTRS;
    let program = AttrDef::new("program", AttrKind::Str, "", "Functions of single elements that are applied last.");
    [outputs, bias, flatten, program, SIZE, PRECISION, FROM, TO, SHAPE]
});

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    /// Layers through lines have the numbers of layers through rows, where the processor has tiles.
    #[test]
    fn a_layer_reads_the_lines_that_another_step_leaves() {
        if !mxrt_kernels::amx::is_permitted() {
            return;
        }
        let of = |n: usize, scale: f32| (0..n).map(|i| (i as f32 * scale).sin()).collect::<Vec<f32>>();
        let (rows, inputs, outputs) = (70, 64, 48);
        let (x, w, bias) = (of(rows * inputs, 0.37), of(outputs * inputs, 1.7), of(outputs, 0.9));
        let lines = OpTest::new("_to_lines")
            .attr("size", "(70, 64)")
            .attr("precision", "float32")
            .f32([rows, inputs], &x)
            .run();
        let plain = OpTest::new("FullyConnected")
            .attr("num_hidden", "48")
            .f32([rows, inputs], &x)
            .f32([outputs, inputs], &w)
            .f32([outputs], &bias)
            .run();
        let y = OpTest::new("_lines_fully_connected")
            .attr("num_hidden", "48")
            .attr("size", "(70, 64)")
            .attr("precision", "float32")
            .attr("from_lines", "True")
            .attr("shape", "(70, 48)")
            .array(lines)
            .f32([outputs, inputs], &w)
            .f32([outputs], &bias)
            .run();
        assert_eq!(f32s(&y, [rows, outputs]), f32s(&plain, [rows, outputs]));
    }
}
