//! `_contrib_MultiBoxPrior`: anchors of single-shot detectors.

use super::image_dims;
use super::multibox_detection::numbers;
use crate::prelude::*;
use mxrt_kernels::vision::multibox::MultiBoxPrior;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_MultiBoxPrior",
    aliases: &["_npx_multibox_prior"],
    doc: "Anchors around every pixel of a feature map, as parts of the image.\n\n\
        data is (batch, channels, height, width); only its height and width matter. The output \
        is (1, height * width * (len(sizes) + len(ratios) - 1), 4), corners: all sizes with \
        the first ratio, then the other ratios with the first size. Liu et al., \"SSD: Single \
        Shot MultiBox Detector\" (2016).",
    attrs: &[
        AttrDef::new("sizes", AttrKind::Floats, "(1,)", "Sizes."),
        AttrDef::new("ratios", AttrKind::Floats, "(1,)", "Ratios of width and height."),
        AttrDef::new("clip", AttrKind::Bool, "False", "Whether anchors are cut to the image."),
        AttrDef::new("steps", AttrKind::Floats, "(-1, -1)", "Distances between pixels (y, x); even ones if negative."),
        AttrDef::new("offsets", AttrKind::Floats, "(0.5, 0.5)", "Where in a pixel the center is (y, x)."),
    ],
    infer_shape: prior_shapes,
    bind: bind_prior,
    form: |attrs, signature| {
        let prior = PriorBoxes::new(attrs, signature)?;
        for_floats(signature.outputs[0].dtype, KernelForm::Anchors(prior.anchors()))
    },
    ..OpDef::BASE
}];

/// Sizes and ratios, of which there must be some.
fn sizes_and_ratios(attrs: &Attrs) -> Result<[Vec<f32>; 2], OpError> {
    let list = |name: &str| -> Vec<f32> { attrs.floats(name).iter().map(|v| *v as f32).collect() };
    let lists = ["sizes", "ratios"].map(list);
    if lists.iter().any(Vec::is_empty) {
        return Err(value_error("sizes and ratios must each have a number at least"));
    }
    Ok(lists)
}

fn prior_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let [sizes, ratios] = sizes_and_ratios(shapes.attrs)?;
    let anchors = match image_dims(shapes, 0, "data")? {
        Some([_, _, Some(height), Some(width)]) if height > 0 && width > 0 => {
            Some(checked_product(&[height, width, sizes.len() + ratios.len() - 1])?)
        }
        Some([_, _, Some(_), Some(_)]) => {
            return Err(shape_error(format!(
                "data has shape {}, but height and width must be positive",
                shapes.inputs[0]
            )));
        }
        _ => None,
    };
    shapes.set_output(0, PartialShape::from_dims([Some(1), anchors, Some(4)]))
}

/// The attributes of anchors, checked, for a feature map.
struct PriorBoxes {
    image: [usize; 2],
    sizes: Vec<f32>,
    ratios: Vec<f32>,
    steps: [f32; 2],
    offsets: [f32; 2],
    clip: bool,
}

impl PriorBoxes {
    fn new(attrs: &Attrs, signature: &Signature<'_>) -> Result<PriorBoxes, OpError> {
        let shape = &signature.inputs[0].shape;
        let image = [shape[2], shape[3]];
        let [sizes, ratios] = sizes_and_ratios(attrs)?;
        let mut steps = numbers::<2>(attrs, "steps")?;
        if steps[0] * steps[1] < 0.0 {
            return Err(value_error(format!("steps must both be given, got ({}, {})", steps[0], steps[1])));
        }
        if steps.iter().any(|s| *s <= 0.0) {
            steps = image.map(|n| 1.0 / n as f32);
        }
        let offsets = numbers::<2>(attrs, "offsets")?;
        if !offsets.iter().all(|v| (0.0..=1.0).contains(v)) {
            return Err(value_error(format!("offsets must be from 0 to 1, got ({}, {})", offsets[0], offsets[1])));
        }
        Ok(PriorBoxes { image, sizes, ratios, steps, offsets, clip: attrs.bool("clip") })
    }

    fn prior(&self) -> MultiBoxPrior<'_> {
        let PriorBoxes { image, ref sizes, ref ratios, steps, offsets, clip } = *self;
        MultiBoxPrior { image, sizes, ratios, steps, offsets, clip }
    }

    fn anchors(&self) -> Anchors {
        let (prior, PriorBoxes { image, steps, offsets, clip, .. }) = (self.prior(), self);
        let half_sides = (0..prior.per_pixel()).map(|anchor| prior.half_sides(anchor)).collect();
        Anchors { columns: image[1], half_sides, steps: *steps, offsets: *offsets, clip: *clip }
    }
}

fn bind_prior(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let boxes = PriorBoxes::new(attrs, signature)?;
    dispatch!(signature.outputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        boxes.prior().run(call.par, elements_mut::<T>(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn anchors_of_one_pixel() {
        let prior =
            |attrs: &[(&str, &str)]| OpTest::new("_contrib_MultiBoxPrior").attrs(attrs).f32([1, 1, 1, 1], &[0.0]);
        let y = prior(&[("sizes", "(0.5, 1.5)"), ("clip", "True")]).run();
        assert_close(&f32s(&y, [1, 2, 4]), &[0.25, 0.25, 0.75, 0.75, 0.0, 0.0, 1.0, 1.0]);
        prior(&[("steps", "(1, -1)")]).error();
        prior(&[("offsets", "(0.5,)")]).error();
        prior(&[("offsets", "(0.5, 2)")]).error();
        prior(&[("sizes", "()")]).error();
    }
}
