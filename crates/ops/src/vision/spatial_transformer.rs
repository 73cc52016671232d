//! `SpatialTransformer`: samples of images at the positions of affine maps.

use super::bilinear_sampler::image_shape;
use super::grid_generator::target_shape;
use super::image_dims;
use crate::prelude::*;
use bytemuck::Pod;
use mxrt_kernels::vision::sampler::{affine_grid, sample_bilinear};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

fn transformer_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let [rows, columns] = target_shape(shapes.attrs)?;
    let Some([batch, channels, ..]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    shapes.set_input(1, "loc", PartialShape::from_dims([batch, Some(6)]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, channels, Some(rows), Some(columns)]))
}

fn bind_transformer(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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

    #[test]
    fn an_affine_map_mirrors_the_image() {
        let y = OpTest::new("SpatialTransformer")
            .attr("transform_type", "affine")
            .attr("sampler_type", "bilinear")
            .attr("target_shape", "(2, 3)")
            .f32([1, 1, 2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
            .f32([1, 6], &[-1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
            .run();
        assert_close(&f32s(&y, [1, 1, 2, 3]), &[2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    }
}
