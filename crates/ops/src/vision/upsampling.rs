//! `UpSampling`: images that grow by a whole factor.

use super::image_dims;
use crate::execution::in_single;
use crate::prelude::*;
use mxrt_kernels::Float;
use mxrt_kernels::conv_plain::{ConvParams, deconvolution};
use mxrt_kernels::vision::resize::{Repeat, repeat_pixels};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "UpSampling",
    doc: "Images that grow by the factor scale.\n\n\
        sample_type nearest: every pixel of the inputs, (batch, channels, height, width), is \
        repeated; further inputs grow to the size of the first one's output, and all are joined \
        along the channels or added. sample_type bilinear: a transposed convolution of data with \
        weight, (channels, 1, kernel, kernel), kernel = 2 * scale - scale % 2; num_filter is the \
        number of channels.",
    inputs: Inputs::Variadic {
        count: "num_args",
        prefix: "arg",
        named: |attrs| is_bilinear(attrs).then_some(&["data", "weight"]),
    },
    attrs: &[
        AttrDef::required("scale", AttrKind::IntFrom(1), "Factor of height and width."),
        AttrDef::new("num_filter", AttrKind::Int, "0", "Number of channels, for bilinear."),
        AttrDef::required("sample_type", AttrKind::Enum(&["bilinear", "nearest"]), "How pixels are made."),
        AttrDef::new("multi_input_mode", AttrKind::Enum(&["concat", "sum"]), "concat", "What several inputs become."),
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs; 2 for bilinear: data and weight."),
        AttrDef::new("workspace", AttrKind::IntFrom(0), "512", "Without effect here.").wide().unsigned(),
    ],
    infer_shape: |shapes| if is_bilinear(shapes.attrs) { bilinear_shapes(shapes) } else { nearest_shapes(shapes) },
    bind: |attrs, signature| {
        if is_bilinear(attrs) { bind_bilinear(attrs, signature) } else { bind_nearest(attrs, signature) }
    },
    form: |attrs, signature| {
        if is_bilinear(attrs) { bilinear_form(attrs, signature) } else { nearest_form(attrs, signature) }
    },
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| match is_bilinear(attrs) {
            true => rows_of_data(attrs, signature, divided),
            false => divided.iter().all(|d| *d),
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn is_bilinear(attrs: &Attrs) -> bool {
    attrs.str("sample_type") == "bilinear"
}

/// Height and width of the output for an image of this size.
fn grown(attrs: &Attrs, size: [Option<usize>; 2]) -> Result<[Option<usize>; 2], OpError> {
    let scale = attrs.count("scale");
    let grow = |n: Option<usize>| n.map(|n| checked_product(&[n, scale])).transpose();
    Ok([grow(size[0])?, grow(size[1])?])
}

fn nearest_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some([batch, _, height, width]) = image_dims(shapes, 0, "arg0")? else { return Ok(()) };
    let [rows, columns] = grown(shapes.attrs, [height, width])?;
    let sum = shapes.attrs.str("multi_input_mode") == "sum";
    let mut channels = Some(0);
    for i in 0..shapes.inputs.len() {
        let name = format!("arg{i}");
        let Some([_, own, height, width]) = image_dims(shapes, i, &name)? else { return Ok(()) };
        for (have, want) in [(height, rows), (width, columns)] {
            if let (Some(have), Some(want)) = (have, want)
                && (have == 0 || !want.is_multiple_of(have))
            {
                return Err(shape_error(format!(
                    "{name} has shape {}, which does not grow to {want} pixels by a whole factor",
                    shapes.inputs[i]
                )));
            }
        }
        shapes.set_input(i, &name, PartialShape::from_dims([batch, None, None, None]))?;
        channels = match (i, sum) {
            (0, _) | (_, false) => channels.zip(own).map(|(a, b)| a + b),
            (_, true) if channels.is_some() && own.is_some() && own != channels => {
                return Err(shape_error(format!(
                    "{name} has shape {}, but inputs that are added must have as many channels as \
                     arg0 {}",
                    shapes.inputs[i], shapes.inputs[0]
                )));
            }
            (_, true) => channels.or(own),
        };
    }
    shapes.set_output(0, PartialShape::from_dims([batch, channels, rows, columns]))
}

/// Side of the filters of a bilinear factor.
fn kernel_side(attrs: &Attrs) -> Result<usize, OpError> {
    let scale = attrs.count("scale");
    checked_product(&[2, scale]).map(|side| side - scale % 2)
}

fn bilinear_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if shapes.inputs.len() != 2 {
        return Err(value_error(format!(
            "sample_type bilinear has num_args=2 (data and weight), got {}",
            shapes.inputs.len()
        )));
    }
    let side = kernel_side(shapes.attrs)?;
    let Some([batch, channels, height, width]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    let filters = shapes.attrs.int("num_filter");
    if let Some(channels) = channels
        && i64::try_from(channels).ok() != Some(filters)
    {
        return Err(value_error(format!("num_filter={filters} must be the number of channels of data, {channels}")));
    }
    shapes.set_input(1, "weight", PartialShape::from_dims([channels, Some(1), Some(side), Some(side)]))?;
    let [rows, columns] = grown(shapes.attrs, [height, width])?;
    shapes.set_output(0, PartialShape::from_dims([batch, channels, rows, columns]))
}

fn is_sum(attrs: &Attrs) -> bool {
    attrs.str("multi_input_mode") == "sum"
}

/// How each input grows, and where in the output it is stored.
fn parts(attrs: &Attrs, signature: &Signature<'_>) -> Result<Vec<Repeat>, OpError> {
    let (sum, out) = (is_sum(attrs), &signature.outputs[0].shape);
    let mut first = 0;
    let part = |(i, shape): (usize, &Shape)| {
        let part = Repeat {
            shape: [shape[1], shape[2], shape[3]],
            scale: out[2].checked_div(shape[2]).unwrap_or(1),
            channels: out[1],
            first: if sum { 0 } else { first },
            add: sum && i > 0,
        };
        first += shape[1];
        // One factor serves both axes.
        let whole = shape.size() == 0 || [shape[2] * part.scale, shape[3] * part.scale] == [out[2], out[3]];
        whole.then_some(part).ok_or_else(|| {
            shape_error(format!("arg{i} has shape {shape}: height and width must grow by the same factor to {out}"))
        })
    };
    signature.inputs.iter().map(|t| &t.shape).enumerate().map(part).collect()
}

/// There is no form for a sum of several.
fn nearest_form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (parts, batch) = (parts(attrs, signature)?, signature.outputs[0].shape[0]);
    if is_sum(attrs) && parts.len() > 1 {
        return Ok(None);
    }
    let moves = parts.iter().enumerate().map(|(i, part)| moved(i, part, batch)).collect();
    for_floats(signature.inputs[0].dtype, KernelForm::Move { fill: None, moves })
}

fn bind_nearest(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (parts, batch) = (parts(attrs, signature)?, signature.outputs[0].shape[0]);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        for (part, input) in parts.iter().zip(call.inputs) {
            repeat_pixels(call.par, *part, elements(input)?, batch, out);
        }
        Ok(())
    })))
}

/// The pixels of an input, each read as often as it is repeated.
fn moved(input: usize, part: &Repeat, batch: usize) -> Move {
    let ([channels, height, width], scale) = (part.shape, part.scale);
    let plane = height * scale * width * scale;
    let steps = |steps: [usize; 6]| steps.iter().map(|step| *step as isize).collect();
    Move {
        input,
        output: 0,
        shape: vec![batch, channels, height, scale, width, scale],
        from: (0, steps([channels * height * width, height * width, width, 0, 1, 0])),
        into: (
            part.first * plane,
            steps([part.channels * plane, plane, scale * width * scale, width * scale, scale, 1]),
        ),
    }
}

fn bind_bilinear(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (scale, side) = (attrs.count("scale"), kernel_side(attrs)?);
    in_single(signature, |signature| match signature.inputs[0].dtype {
        DType::F32 => Ok(bilinear::<f32>(scale, side, signature)),
        DType::F64 => Ok(bilinear::<f64>(scale, side, signature)),
        other => Err(unsupported_dtype(other, "float32, float64 and float16")),
    })
}

fn bilinear_form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (scale, side) = (attrs.count("scale"), kernel_side(attrs)?);
    let form = KernelForm::Deconvolution {
        kernel: [1, side, side],
        stride: [1, scale, scale],
        pad: [0, cut(scale), cut(scale)],
        dilate: [1; 3],
        groups: signature.inputs[0].shape[1].max(1),
        bias: None,
    };
    for_floats(signature.inputs[0].dtype, form)
}

/// The rows that a bilinear factor removes at the beginning.
fn cut(scale: usize) -> usize {
    (scale - 1).div_ceil(2)
}

fn bilinear<T: Float>(scale: usize, side: usize, signature: &Signature<'_>) -> Box<dyn Kernel> {
    kernel_fn(signature, move |call| {
        let ([data, weight], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let params = ConvParams {
            kernel: &[side; 2],
            stride: &[scale; 2],
            pad: &[cut(scale); 2],
            dilate: &[1; 2],
            groups: data.shape[1].max(1),
        };
        let (x, w, shape) = (elements::<T>(data)?, elements::<T>(weight)?, out.shape);
        if shape.size() > 0 {
            deconvolution(call.par, params, x, data.shape, w, None, elements_mut(out)?, shape);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    fn nearest(attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("UpSampling").attr("sample_type", "nearest").attrs(attrs)
    }

    #[test]
    fn inputs_grow_to_one_size_and_are_joined_or_added() {
        let inputs = |test: OpTest| test.f32([1, 1, 1, 2], &[1.0, 2.0]).f32([1, 1, 2, 4], &[10.0; 8]);
        let two = [("scale", "2"), ("num_args", "2")];
        let joined = f32s(&inputs(nearest(&two)).run(), [1, 2, 2, 4]);
        assert_eq!(joined[..8], [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!(joined[8..], [10.0; 8]);
        let added = inputs(nearest(&two).attr("multi_input_mode", "sum")).run();
        assert_eq!(f32s(&added, [1, 1, 2, 4])[..4], [11.0, 11.0, 12.0, 12.0]);
    }

    #[test]
    fn a_bilinear_factor_of_two_interpolates() {
        let weight: Vec<f32> =
            [0.25, 0.75, 0.75, 0.25].iter().flat_map(|a| [0.25, 0.75, 0.75, 0.25].map(|b| a * b)).collect();
        let y = OpTest::new("UpSampling")
            .attr("sample_type", "bilinear")
            .attr("scale", "2")
            .attr("num_args", "2")
            .attr("num_filter", "1")
            .f32([1, 1, 2, 2], &[1.0; 4])
            .f32([1, 1, 4, 4], &weight)
            .run();
        let y = f32s(&y, [1, 1, 4, 4]);
        assert_close(&[y[0], y[1], y[5], y[15]], &[0.5625, 0.75, 1.0, 0.5625]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let one = [("scale", "2"), ("num_args", "1")];
        assert!(nearest(&one).f32([1, 2, 2], &[0.0; 4]).error().message.contains("4 axes"));
        let two = [("scale", "3"), ("num_args", "2")];
        let message = |shape: [usize; 4]| {
            let zeros = vec![0.0; shape.iter().product()];
            nearest(&two).f32([1, 1, 2, 2], &[0.0; 4]).f32(shape, &zeros).error().message.clone()
        };
        assert!(message([1, 1, 4, 4]).contains("whole factor"));
        assert!(message([1, 1, 2, 3]).contains("same factor"));
        assert!(message([2, 1, 2, 2]).contains("arg1"));
    }

    #[test]
    fn a_bilinear_factor_takes_half_precision() {
        let test = OpTest::new("UpSampling").attr("scale", "1").attr("sample_type", "bilinear").attr("num_args", "2");
        let test = test.attr("num_filter", "1").f16([1, 1, 1, 2], &[1.0, 2.0]).f16([1, 1, 1, 1], &[3.0]);
        assert_eq!(f16s(&test.run(), [1, 1, 1, 2]), [3.0, 6.0]);
    }
}
