//! `Correlation`: how well patches of two images match.

use super::image_dims;
use crate::prelude::*;
use mxrt_kernels::vision::correlation::Correlation;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Correlation",
    doc: "How well patches of one image match shifted patches of another.\n\ndata1 and data2 are \
          (batch, channels, height, width). The output is (batch, shifts, rows, columns): for \
          every patch of data1 and every shift of data2 the mean of the products over the patch \
          and all channels. Dosovitskiy et al., \"FlowNet: Learning Optical Flow with \
          Convolutional Networks\" (2015).",
    inputs: Inputs::Fixed(&["data1", "data2"]),
    hidden_outputs: |_| 2,
    attrs: &[
        AttrDef::new("kernel_size", AttrKind::IntFrom(0), "1", "Side of a patch, an odd number.").unsigned(),
        AttrDef::new("max_displacement", AttrKind::IntFrom(0), "1", "Largest shift in each direction.").unsigned(),
        AttrDef::new("stride1", AttrKind::IntFrom(0), "1", "Distance between patches.").unsigned(),
        AttrDef::new("stride2", AttrKind::IntFrom(0), "1", "Distance between shifts.").unsigned(),
        AttrDef::new("pad_size", AttrKind::IntFrom(0), "0", "Rows and columns of zeros on every side.").unsigned(),
        AttrDef::new(
            "is_multiply",
            AttrKind::Bool,
            "True",
            "Whether numbers are multiplied; otherwise their absolute difference counts.",
        ),
    ],
    infer_shape,
    infer_dtype: |dtypes| dtypes.uniform(&["data1", "data2"]),
    bind,
    form: |attrs, signature| {
        for_floats(signature.inputs[0].dtype, KernelForm::Correlation(correlation(attrs, signature)?))
    },
    rewrites: &Rewrites { row_wise: |_, _, divided| divided == [true, true], ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Rows or columns of patches in an image with `size` rows or columns.
fn patches(attrs: &Attrs, size: usize) -> Result<usize, OpError> {
    let [kernel, displacement, pad] = ["kernel_size", "max_displacement", "pad_size"].map(|name| attrs.count(name));
    let border = displacement.saturating_add(kernel / 2);
    let padded = size.saturating_add(pad.saturating_mul(2));
    match padded.checked_sub(border.saturating_mul(2)) {
        Some(n) if n > 0 => Ok(n.div_ceil(attrs.count("stride1"))),
        _ => Err(shape_error(format!(
            "the image has {padded} rows or columns with its padding, but patches and shifts need \
             more than {}",
            border.saturating_mul(2)
        ))),
    }
}

/// Shifts to each side.
fn radius(attrs: &Attrs) -> Result<usize, OpError> {
    for name in ["stride1", "stride2"] {
        if attrs.count(name) == 0 {
            return Err(value_error(format!("{name} must be positive")));
        }
    }
    if attrs.count("kernel_size").is_multiple_of(2) {
        return Err(value_error(format!("kernel_size={} must be an odd number", attrs.count("kernel_size"))));
    }
    Ok(attrs.count("max_displacement") / attrs.count("stride2"))
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let side = radius(shapes.attrs)?.saturating_mul(2).saturating_add(1);
    let shifts = checked_product(&[side, side])?;
    let Some([batch, channels, height, width]) = image_dims(shapes, 0, "data1")? else { return Ok(()) };
    shapes.set_input(1, "data2", PartialShape::from_dims([batch, channels, height, width]))?;
    let rows = height.map(|n| patches(shapes.attrs, n)).transpose()?;
    let columns = width.map(|n| patches(shapes.attrs, n)).transpose()?;
    shapes.set_output(0, PartialShape::from_dims([batch, Some(shifts), rows, columns]))
}

fn correlation(attrs: &Attrs, signature: &Signature<'_>) -> Result<Correlation, OpError> {
    let (data, out) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    if data[1] == 0 && out.size() > 0 {
        return Err(shape_error(format!("data1 has shape {data}, but there must be a channel at least")));
    }
    Ok(Correlation {
        image: [data[1], data[2], data[3]],
        kernel: attrs.count("kernel_size"),
        pad: attrs.count("pad_size"),
        first: attrs.count("max_displacement"),
        stride: attrs.count("stride1"),
        radius: radius(attrs)?,
        shift: attrs.count("stride2"),
        patches: [out[2], out[3]],
        multiply: attrs.bool("is_multiply"),
    })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (data, out) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    let correlation = correlation(attrs, signature)?;
    let multiply_adds = out.size().saturating_mul(data[1]).saturating_mul(correlation.kernel.saturating_pow(2)) as u64;
    let numbers = checked_product(&[2, data.size()])?;
    dispatch!(signature.inputs[0].dtype, float, T => {
        let bytes = checked_product(&[numbers, size_of::<<T as Element>::Acc>()])?;
        Ok(Box::new(CorrelationKernel::<T> { correlation, numbers, bytes, multiply_adds, element: std::marker::PhantomData }))
    })
}

struct CorrelationKernel<T> {
    correlation: Correlation,
    /// Numbers of the workspace: both inputs with their channels last.
    numbers: usize,
    bytes: usize,
    multiply_adds: u64,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: Element> Kernel for CorrelationKernel<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([a, b], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let scratch = scratch::<T::Acc>(call.workspace, self.numbers)?;
        self.correlation.run(call.par, elements(a)?, elements(b)?, scratch, elements_mut::<T>(out)?);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.bytes
    }

    fn cost_ns(&self) -> u64 {
        1_000 + self.multiply_adds / 8
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.multiply_adds)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn correlation(attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("Correlation").attrs(attrs)
    }

    #[test]
    fn a_pixel_is_compared_with_its_neighbours() {
        let image = |t: OpTest, scale: f32| t.f32([1, 1, 1, 3], &[1.0 * scale, 2.0 * scale, 4.0 * scale]);
        let both = |attrs| image(image(correlation(attrs), 1.0), 10.0);
        let y = both(&[("pad_size", "1")]).run();
        let mut want = [0.0; 27];
        // No row above or below: only the shifts in the row of the pixel match something.
        want[9..18].copy_from_slice(&[0.0, 20.0, 80.0, 10.0, 40.0, 160.0, 20.0, 80.0, 0.0]);
        assert_close(&f32s(&y, [1, 9, 1, 3]), &want);
        let y = both(&[("pad_size", "1"), ("is_multiply", "False"), ("max_displacement", "0"), ("stride1", "2")]).run();
        assert_close(&f32s(&y, [1, 1, 2, 3])[..3], &[0.0; 3]);
        let y = both(&[("is_multiply", "False"), ("max_displacement", "0"), ("stride1", "2")]).run();
        assert_close(&f32s(&y, [1, 1, 1, 2]), &[9.0, 36.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |attrs: &[(&str, &str)]| {
            correlation(attrs).f32([1, 1, 2, 2], &[0.0; 4]).f32([1, 1, 2, 2], &[0.0; 4]).error().message.clone()
        };
        assert!(error(&[]).contains("need more than 2"));
        assert!(error(&[("pad_size", "3"), ("kernel_size", "2")]).contains("odd"));
        assert!(error(&[("pad_size", "3"), ("stride2", "0")]).contains("stride2"));
        let other = correlation(&[("pad_size", "3")]).f32([1, 1, 2, 2], &[0.0; 4]).f32([1, 1, 1, 2], &[0.0; 2]);
        assert!(other.error().message.starts_with("data2 has shape (1, 1, 1, 2)"));
    }
}
