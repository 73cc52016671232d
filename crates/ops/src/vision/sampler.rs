//! `BilinearSampler`, `GridGenerator`, `SpatialTransformer`: sampling of images at the positions of
//! a grid.

use super::image_dims;
use crate::prelude::*;
use bytemuck::Pod;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::vision::sampler::{affine_grid, flow_grid, sample_bilinear};
use mxrt_tensor::{PartialShape, Shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "BilinearSampler",
        doc: "Samples images at the positions of a grid by bilinear interpolation; what lies \
            outside is 0.\n\n\
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
    },
    OpDef {
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
    },
    OpDef {
        name: "SpatialTransformer",
        doc: "Samples images at the positions of an affine map: GridGenerator, then \
            BilinearSampler.\n\n\
            data is (batch, channels, height, width), loc (batch, 6), target_shape (rows, columns) \
            of the output. Jaderberg et al., \"Spatial Transformer Networks\" (2015).",
        inputs: Inputs::Fixed(&["data", "loc"]),
        attrs: &[
            AttrDef::new("target_shape", AttrKind::Shape, "(0, 0)", "Height and width of the output."),
            AttrDef::required("transform_type", AttrKind::Enum(&["affine"]), "What loc holds."),
            AttrDef::required("sampler_type", AttrKind::Enum(&["bilinear"]), "How pixels are interpolated."),
            AttrDef::new("cudnn_off", AttrKind::OptBool, "None", "Without effect here."),
        ],
        hidden_outputs: |_| 2,
        infer_shape: transformer_shapes,
        infer_dtype: |dtypes| dtypes.uniform(&["data", "loc"]),
        bind: bind_transformer,
        form: |_, signature| for_floats(signature.inputs[0].dtype, KernelForm::Sample { affine: true }),
        rewrites: &Rewrites { row_wise: |_, _, divided| divided == [true, true], ..Rewrites::NONE },
        ..OpDef::BASE
    },
];

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

/// Rows and columns of the attribute, which an affine map needs.
fn target_shape(attrs: &Attrs) -> Result<[usize; 2], OpError> {
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

fn transformer_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let [rows, columns] = target_shape(shapes.attrs)?;
    let Some([batch, channels, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    shapes.set_input(1, "loc", PartialShape::from_dims([batch, Some(6)]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, channels, Some(rows), Some(columns)]))
}

fn image_shape(shape: &Shape) -> [usize; 4] {
    [shape[0], shape[1], shape[2], shape[3]]
}

fn bind_sampler(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (data, out) = (image_shape(&signature.inputs[0].shape), image_shape(&signature.outputs[0].shape));
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, grid) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        sample_bilinear(call.par, x, data, grid, [out[2], out[3]], elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

fn bind_grid(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let [_, _, rows, columns] = image_shape(&signature.outputs[0].shape);
    let warp = is_flow(attrs);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (data, out) = (elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        if warp { flow_grid(call.par, data, [rows, columns], out) } else { affine_grid(call.par, data, [rows, columns], out) }
        Ok(())
    })))
}

fn bind_transformer(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    dispatch!(signature.inputs[0].dtype, float, T => Ok(transformer::<T>(signature)))
}

/// A transformer whose grid is stored in the workspace between the two steps.
struct Transformer<T> {
    data: [usize; 4],
    target: [usize; 2],
    cost_ns: u64,
    element: std::marker::PhantomData<fn() -> T>,
}

fn transformer<T: Element + Pod>(signature: &Signature<'_>) -> Box<dyn Kernel> {
    let (data, out) = (image_shape(&signature.inputs[0].shape), image_shape(&signature.outputs[0].shape));
    let cost_ns = 2 * signature.outputs[0].shape.size() as u64 + 500;
    Box::new(Transformer::<T> { data, target: [out[2], out[3]], cost_ns, element: std::marker::PhantomData })
}

impl<T> Transformer<T> {
    fn grid_len(&self) -> usize {
        self.data[0] * 2 * self.target[0] * self.target[1]
    }
}

impl<T: Element + Pod> Kernel for Transformer<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, maps], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let grid = scratch::<T>(call.workspace, self.grid_len())?;
        affine_grid(call.par, elements(maps)?, self.target, grid);
        sample_bilinear(call.par, elements(data)?, self.data, grid, self.target, elements_mut(out)?);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.grid_len() * size_of::<T>()
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    const MIRROR: [f32; 6] = [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

    #[test]
    fn an_affine_map_mirrors_the_image_in_one_step_or_two() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let want = [2.0, 1.0, 0.0, 5.0, 4.0, 3.0];
        let grid = OpTest::new("GridGenerator")
            .attr("transform_type", "affine")
            .attr("target_shape", "(2, 3)")
            .f32([1, 6], &MIRROR)
            .run();
        let grid = f32s(&grid, [1, 2, 2, 3]);
        let y = OpTest::new("BilinearSampler").f32([1, 1, 2, 3], &x).f32([1, 2, 2, 3], &grid).run();
        assert_close(&f32s(&y, [1, 1, 2, 3]), &want);
        let y = OpTest::new("SpatialTransformer")
            .attr("transform_type", "affine")
            .attr("sampler_type", "bilinear")
            .attr("target_shape", "(2, 3)")
            .f32([1, 1, 2, 3], &x)
            .f32([1, 6], &MIRROR)
            .run();
        assert_close(&f32s(&y, [1, 1, 2, 3]), &want);
    }

    #[test]
    fn a_flow_of_no_pixels_is_the_identity() {
        let grid = OpTest::new("GridGenerator").attr("transform_type", "warp").f32([1, 2, 1, 3], &[0.0; 6]).run();
        assert_close(&f32s(&grid, [1, 2, 1, 3])[..3], &[-1.0, 0.0, 1.0]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let sampler = |grid: [usize; 4]| {
            let zeros = vec![0.0; grid.iter().product()];
            OpTest::new("BilinearSampler").f32([1, 1, 2, 2], &[0.0; 4]).f32(grid, &zeros).error().message.clone()
        };
        assert!(sampler([1, 3, 1, 1]).contains("second axis"));
        assert!(sampler([2, 2, 1, 1]).contains("grid"));
        let grid = OpTest::new("GridGenerator").attr("transform_type", "affine").f32([1, 6], &MIRROR).error();
        assert!(grid.message.contains("target_shape"));
    }
}
