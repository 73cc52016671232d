//! `BilinearSampler`: samples of images at the positions of a grid.

use super::image_dims;
use crate::prelude::*;
use mxrt_kernels::vision::sampler::sample_bilinear;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "BilinearSampler",
    doc: "Samples images at the positions of a grid by bilinear interpolation; a position \
        outside gives 0.\n\n\
        data is (batch, channels, height, width), grid (batch, 2, rows, columns): x, then y, \
        from -1 at the first pixel to 1 at the last one. The output is (batch, channels, rows, \
        columns).",
    inputs: Inputs::Fixed(&["data", "grid"]),
    attrs: &[AttrDef::new("cudnn_off", AttrKind::OptBool, "None", "Without effect here.")],
    hidden_outputs: |_| 1,
    infer_shape: sampler_shapes,
    infer_dtype: |dtypes| dtypes.uniform(&["data", "grid"]),
    bind: bind_sampler,
    form: |_, signature| for_floats(signature.inputs[0].dtype, KernelForm::Sample { affine: false }),
    rewrites: &Rewrites { row_wise: |_, _, divided| divided == [true, true], ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn sampler_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (data, grid) = (image_dims(shapes, 0, "data")?, image_dims(shapes, 1, "grid")?);
    let (Some([batch, channels, ..]), Some([_, two, rows, columns])) = (data, grid) else { return Ok(()) };
    if two.is_some_and(|n| n != 2) {
        return Err(shape_error(format!(
            "grid has shape {}, but its second axis must be 2: x and y",
            shapes.inputs[1]
        )));
    }
    shapes.set_input(1, "grid", PartialShape::from_dims([batch, Some(2), rows, columns]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, channels, rows, columns]))
}

pub(super) fn image_shape(shape: &Shape) -> [usize; 4] {
    [shape[0], shape[1], shape[2], shape[3]]
}

fn bind_sampler(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (data, out) = (image_shape(&signature.inputs[0].shape), image_shape(&signature.outputs[0].shape));
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, grid) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        sample_bilinear(call.par, x, data, grid, [out[2], out[3]], elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn what_does_not_fit_is_named() {
        let sampler = |grid: [usize; 4]| {
            let zeros = vec![0.0; grid.iter().product()];
            OpTest::new("BilinearSampler").f32([1, 1, 2, 2], &[0.0; 4]).f32(grid, &zeros).error().message.clone()
        };
        assert!(sampler([1, 3, 1, 1]).contains("second axis"));
        assert!(sampler([2, 2, 1, 1]).contains("grid"));
    }

    #[test]
    fn a_grid_from_right_to_left_mirrors_the_image() {
        let grid = [1.0, 0.0, -1.0, 1.0, 0.0, -1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0];
        let test = OpTest::new("BilinearSampler").f32([1, 1, 2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let y = test.f32([1, 2, 2, 3], &grid).run();
        assert_close(&f32s(&y, [1, 1, 2, 3]), &[2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    }
}
