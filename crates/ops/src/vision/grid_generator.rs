//! `GridGenerator`: grids of positions, by affine maps or flows.

use super::bilinear_sampler::image_shape;
use super::image_dims;
use crate::prelude::*;
use mxrt_kernels::vision::sampler::{affine_grid, flow_grid};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "GridGenerator",
    doc: "Makes a grid for BilinearSampler.\n\n\
        transform_type affine: data is (batch, 6), the rows of a 2 x 3 matrix that maps (x, y, \
        1), and target_shape (rows, columns). transform_type warp: data is an optical flow in \
        pixels, (batch, 2, rows, columns).",
    attrs: &[
        AttrDef::required("transform_type", AttrKind::Enum(&["affine", "warp"]), "What data holds."),
        AttrDef::new("target_shape", AttrKind::Shape, "(0, 0)", "Rows and columns of the grid of an affine map."),
    ],
    hidden_outputs: |_| 1,
    infer_shape: grid_shapes,
    bind: bind_grid,
    form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::Grid { flow: is_flow(attrs) }),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Rows and columns of the attribute, which an affine map needs.
pub(super) fn target_shape(attrs: &Attrs) -> Result<[usize; 2], OpError> {
    match extents("target_shape", attrs.ints("target_shape"))?[..] {
        [rows, columns] if rows > 0 && columns > 0 => Ok([rows, columns]),
        ref other => Err(value_error(format!(
            "target_shape must be two positive numbers (rows, columns), got {}",
            Shape::new(other)
        ))),
    }
}

/// Whether the grid is made of an optical flow.
fn is_flow(attrs: &Attrs) -> bool {
    attrs.str("transform_type") == "warp"
}

fn grid_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if is_flow(shapes.attrs) {
        let Some([batch, _, rows, columns]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
        let flow = PartialShape::from_dims([batch, Some(2), rows, columns]);
        shapes.set_input(0, "data", flow.clone())?;
        return shapes.set_output(0, flow);
    }
    let [rows, columns] = target_shape(shapes.attrs)?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let batch = dims.first().copied().flatten();
    shapes.set_input(0, "data", PartialShape::from_dims([batch, Some(6)]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, Some(2), Some(rows), Some(columns)]))
}

fn bind_grid(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [_, _, rows, columns] = image_shape(&signature.outputs[0].shape);
    let warp = is_flow(attrs);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (data, out) = (elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        if warp { flow_grid(call.par, data, [rows, columns], out) } else { affine_grid(call.par, data, [rows, columns], out) }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    const MIRROR: [f32; 6] = [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

    #[test]
    fn a_flow_of_no_pixels_is_the_identity() {
        let grid = OpTest::new("GridGenerator").attr("transform_type", "warp").f32([1, 2, 1, 3], &[0.0; 6]).run();
        assert_close(&f32s(&grid, [1, 2, 1, 3])[..3], &[-1.0, 0.0, 1.0]);
    }

    #[test]
    fn an_affine_map_makes_a_grid_from_right_to_left() {
        let affine = || OpTest::new("GridGenerator").attr("transform_type", "affine");
        let grid = affine().attr("target_shape", "(2, 3)").f32([1, 6], &MIRROR).run();
        let want = [1.0, 0.0, -1.0, 1.0, 0.0, -1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0];
        assert_close(&f32s(&grid, [1, 2, 2, 3]), &want);
        assert!(affine().f32([1, 6], &MIRROR).error().message.contains("target_shape"));
    }
}
