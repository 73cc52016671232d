//! Images of pixels, and planes made from them: `images.h`.

use crate::arguments::{BorderedImageArgument, ImagePlanesArgument, NormalizePlanesArgument, ResizedImagesArgument};
use crate::launch::{Bound, Computes, code, computes, each, known, small};
use mxrt_kernels::image::border::{Border, Bordered};
use mxrt_kernels::image::resize::{Interpolation, Resize};
use mxrt_ops::{KernelForm, Signature};
use mxrt_tensor::DType;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::ImagePlanes { pixels, channels } => bind_planes(*pixels, *channels, signature),
        KernelForm::NormalizePlanes { pixels, terms } => bind_normalization(*pixels, terms, signature),
        KernelForm::BorderedImage { bordered, colour } => bind_border(bordered, colour, signature),
        KernelForm::ResizeImages(resize) => bind_resize(*resize, signature),
        _ => None,
    }
}

fn bind_planes(pixels: usize, channels: usize, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first().filter(|t| known(t))?, signature.outputs.first()?);
    let (n, dtype) = (output.shape.size(), code(input.dtype));
    Some(Bound::kernel(c"image_planes", each(n), move |at| ImagePlanesArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        n: n as i64,
        pixels: pixels as i64,
        channels: channels as i64,
        dtype,
        unused: 0,
    }))
}

fn bind_normalization(pixels: usize, terms: &[[f64; 2]], signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first()?;
    let name = match computes(output.dtype)? {
        Computes::Single => c"normalize_planes_f32",
        Computes::Double | Computes::Whole => c"normalize_planes_f64",
    };
    let n = output.shape.size();
    let (mut means, mut deviations) = ([0.0; 3], [1.0; 3]);
    for (i, [mean, deviation]) in terms.iter().enumerate() {
        *means.get_mut(i)? = *mean;
        *deviations.get_mut(i)? = *deviation;
    }
    let argument = NormalizePlanesArgument {
        to: 0,
        from: 0,
        n: n as i64,
        pixels: pixels as i64,
        means,
        deviations,
        channels: terms.len() as i32,
        dtype: code(output.dtype),
    };
    Some(Bound::kernel(name, each(n), move |at| NormalizePlanesArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}

fn bind_border(bordered: &Bordered, colour: &[f64], signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|t| known(t))?;
    let [height, width, channels] = bordered.shape;
    let mut colours = [0.0; 4];
    colours.get_mut(..colour.len())?.copy_from_slice(colour);
    let n = output.shape.size();
    let argument = BorderedImageArgument {
        to: 0,
        from: 0,
        n: n as i64,
        channels: channels as i64,
        colour: colours,
        size: small([height, width])?,
        before: small(bordered.before)?,
        columns: i32::try_from(bordered.to[1]).ok()?,
        kind: match bordered.border {
            Border::Constant => 0,
            Border::Replicate => 1,
            Border::Reflect => 2,
            Border::Wrap => 3,
            Border::Reflect101 => 4,
        },
        dtype: code(output.dtype),
        bytes: output.dtype.size() as i32,
    };
    Some(Bound::kernel(c"bordered_image", each(n), move |at| BorderedImageArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}

fn bind_resize(resize: Resize, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|t| known(t))?;
    let Resize { from, to, channels, interpolation } = resize;
    let is_byte = output.dtype == DType::U8;
    let (kind, name) = match interpolation {
        Interpolation::Nearest => (0, c"resize_nearest"),
        // Other integers are rounded in ways that no kernel has.
        _ if !is_byte && !output.dtype.is_float() => return None,
        _ if resize.takes_means() => (3, c"resize_blended"),
        Interpolation::Linear => (1, if is_byte { c"resize_bytes" } else { c"resize_blended" }),
        Interpolation::Area => (4, if is_byte { c"resize_bytes" } else { c"resize_blended" }),
        Interpolation::Cubic if !is_byte => (2, c"resize_blended"),
        Interpolation::LinearExact | Interpolation::Cubic | Interpolation::Lanczos => return None,
    };
    let n = output.shape.size();
    let argument = ResizedImagesArgument {
        to: 0,
        from: 0,
        n: n as i64,
        channels: channels as i64,
        size: small(from)?,
        out: small(to)?,
        kind,
        halves: i32::from(resize.halves()),
        dtype: code(output.dtype),
        bytes: output.dtype.size() as i32,
    };
    Some(Bound::kernel(name, each(n), move |at| ResizedImagesArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}
