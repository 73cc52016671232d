//! `im2col`, `col2im`: the pixels that every window of a convolution sees as columns, and back.

use crate::execution::in_single;
use crate::nn::convolution::spatial_list;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::conv_plain::conv_size;
use mxrt_kernels::vision::columns::ColumnWindows;
use mxrt_tensor::PartialShape;

const KERNEL: AttrDef =
    AttrDef::required("kernel", AttrKind::Shape, "Size: (width,), (height, width) or (depth, height, width).");
const STRIDE: AttrDef = AttrDef::new("stride", AttrKind::Shape, "()", "Distances between windows; 1 if not given.");
const DILATE: AttrDef = AttrDef::new("dilate", AttrKind::Shape, "()", "Distances between taps; 1 if not given.");
const PAD: AttrDef = AttrDef::new("pad", AttrKind::Shape, "()", "Zeros on both sides; 0 if not given.");

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "im2col",
        doc: "The pixels that every window of a convolution sees, as columns.\n\n\
            data is (batch, channels, spatial...), the output (batch, channels * taps of the \
            kernel, number of windows).",
        attrs: &[KERNEL, STRIDE, DILATE, PAD],
        infer_shape: im2col_shapes,
        bind: bind_im2col,
        form: |attrs, signature| {
            let windows = Sliding::new(attrs, &signature.inputs[0].shape[2..])?.kernel();
            for_floats(signature.inputs[0].dtype, KernelForm::Columns(windows))
        },
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
    OpDef {
        name: "col2im",
        doc: "Adds the columns of im2col up at their pixels.\n\n\
            data is (batch, channels * taps of the kernel, number of windows), the output (batch, \
            channels, output_size...).",
        attrs: &[
            AttrDef::required("output_size", AttrKind::Shape, "Spatial extents of the output."),
            KERNEL,
            STRIDE,
            DILATE,
            PAD,
        ],
        infer_shape: col2im_shapes,
        bind: bind_col2im,
        form: |attrs, signature| {
            let windows = Sliding::new(attrs, &signature.outputs[0].shape[2..])?.kernel();
            for_floats(signature.inputs[0].dtype, KernelForm::ColumnSums(windows))
        },
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
];

/// The windows of the attributes over an image.
struct Sliding {
    kernel: Dims,
    stride: Dims,
    dilate: Dims,
    pad: Dims,
    image: Dims,
    windows: Dims,
}

impl Sliding {
    fn new(attrs: &Attrs, image: &[usize]) -> Result<Sliding, OpError> {
        let kernel = kernel_of(attrs)?;
        let list = |name, default| spatial_list(attrs, name, default, kernel.len());
        let (stride, dilate, pad) = (list("stride", 1)?, list("dilate", 1)?, list("pad", 0)?);
        if stride.iter().chain(&dilate).any(|v| *v == 0) {
            return Err(value_error("stride and dilate must be positive"));
        }
        if stride.iter().chain(&dilate).chain(&pad).chain(image).any(|v| *v > i32::MAX as usize) {
            return Err(value_error("stride, dilate, pad or an extent of the image is too large"));
        }
        if image.len() != kernel.len() {
            let (have, want) = (image.len(), kernel.len());
            return Err(shape_error(format!("the image has {have} spatial axes but kernel has {want} extents")));
        }
        let windows = (0..kernel.len())
            .map(|axis| {
                conv_size(image[axis], kernel[axis], stride[axis], pad[axis], dilate[axis]).ok_or_else(|| {
                    shape_error(format!(
                        "kernel size exceeds input: spatial axis {axis} has {} + 2 * {} (padding) \
                         elements",
                        image[axis], pad[axis]
                    ))
                })
            })
            .collect::<Result<Dims, OpError>>()?;
        Ok(Sliding { kernel, stride, dilate, pad, image: image.iter().copied().collect(), windows })
    }

    fn kernel(&self) -> ColumnWindows {
        ColumnWindows::new(&self.kernel, &self.stride, &self.dilate, &self.pad, &self.image, &self.windows)
    }

    fn columns(&self) -> Result<usize, OpError> {
        checked_product(&self.windows)
    }
}

fn kernel_of(attrs: &Attrs) -> Result<Dims, OpError> {
    let kernel = extents("kernel", attrs.ints("kernel"))?;
    if !(1..=3).contains(&kernel.len()) || kernel.iter().any(|k| !(1..=i32::MAX as usize).contains(k)) {
        return Err(value_error("kernel must have one to three positive extents"));
    }
    Ok(kernel)
}

fn im2col_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let taps = checked_product(&kernel_of(shapes.attrs)?)?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [batch, channels, image @ ..] = &dims[..] else {
        return Err(shape_error(format!(
            "data has shape {}; expected (batch, channels, spatial...)",
            shapes.inputs[0]
        )));
    };
    let columns = match image.iter().copied().collect::<Option<Dims>>() {
        Some(image) => Some(Sliding::new(shapes.attrs, &image)?.columns()?),
        None => None,
    };
    let rows = channels.map(|c| checked_product(&[c, taps])).transpose()?;
    shapes.set_output(0, PartialShape::from_dims([*batch, rows, columns]))
}

fn col2im_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let image = extents("output_size", shapes.attrs.ints("output_size"))?;
    let sliding = Sliding::new(shapes.attrs, &image)?;
    let taps = checked_product(&sliding.kernel)?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [batch, rows, _] = dims[..] else {
        return Err(shape_error(format!(
            "data has shape {}; expected (batch, channels * taps, windows)",
            shapes.inputs[0]
        )));
    };
    if rows.is_some_and(|rows| !rows.is_multiple_of(taps)) {
        return Err(shape_error(format!(
            "data has shape {}, but its second axis must be a multiple of the {taps} taps of the \
             kernel",
            shapes.inputs[0]
        )));
    }
    let columns = sliding.columns()?;
    shapes.set_input(0, "data", PartialShape::from_dims([batch, rows, Some(columns)]))?;
    let mut out = vec![batch, rows.map(|rows| rows / taps)];
    out.extend(image.iter().map(|n| Some(*n)));
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn bind_im2col(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let shape = &signature.inputs[0].shape;
    let (planes, windows) = (shape[0] * shape[1], Sliding::new(attrs, &shape[2..])?.kernel());
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        windows.gather(call.par, planes, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

fn bind_col2im(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let shape = &signature.outputs[0].shape;
    let (planes, windows) = (shape[0] * shape[1], Sliding::new(attrs, &shape[2..])?.kernel());
    in_single(signature, |signature| {
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            windows.scatter(call.par, planes, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s, f32s};

    #[test]
    fn columns_are_windows_and_add_up_again() {
        let x = [1.0, 2.0, 3.0, 4.0];
        let columns = OpTest::new("im2col").attr("kernel", "2").attr("pad", "1").f32([1, 1, 4], &x).run();
        let columns = f32s(&columns, [1, 2, 5]);
        assert_eq!(columns, [0.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
        let image = OpTest::new("col2im")
            .attr("kernel", "2")
            .attr("pad", "1")
            .attr("output_size", "4")
            .f32([1, 2, 5], &columns)
            .run();
        assert_eq!(f32s(&image, [1, 1, 4]), [2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let im2col = |kernel: &str| {
            OpTest::new("im2col").attr("kernel", kernel).f32([1, 1, 4], &[0.0; 4]).error().message.clone()
        };
        assert!(im2col("5").contains("exceeds"));
        assert!(im2col("(2, 2)").contains("spatial axes"));
        assert!(im2col("0").contains("positive"));
        let col2im =
            OpTest::new("col2im").attr("kernel", "2").attr("output_size", "4").f32([1, 3, 3], &[0.0; 9]).error();
        assert!(col2im.message.contains("multiple of the 2 taps"));
    }

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        // Four windows see the one pixel. 2051 lies between two numbers; in half precision 2048 + 1
        // is 2048.
        let mut columns = [1.0; 16];
        columns[3] = 2048.0;
        let test = OpTest::new("col2im").attr("kernel", "(4,)").attr("output_size", "(1,)").attr("pad", "(3,)");
        assert_eq!(f16s(&test.f16([1, 4, 4], &columns).run(), [1, 1, 1]), [2052.0]);
    }
}
