//! `LRN`: local response normalisation across channels.

use crate::prelude::*;
use mxrt_kernels::norm::{LrnParams, lrn};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "LRN",
    doc: "Divides by (knorm + alpha / nsize * sum of squares over nsize neighbouring channels) ^ \
        beta.",
    hidden_outputs: |_| 1,
    attrs: &[
        AttrDef::new("alpha", AttrKind::Float, "9.99999975e-05", "Scale of the sum of squares."),
        AttrDef::new("beta", AttrKind::Float, "0.75", "Exponent."),
        AttrDef::new("knorm", AttrKind::Float, "2", "Offset."),
        AttrDef::required(
            "nsize",
            AttrKind::IntFrom(1),
            "Number of channels in the window; of an even number one less.",
        )
        .unsigned(),
    ],
    bind,
    form,
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Parameters, and the axes around the channels.
fn params(attrs: &Attrs, signature: &Signature<'_>) -> Result<(LrnParams, [usize; 3]), OpError> {
    let shape = &signature.inputs[0].shape;
    let nsize = attrs.count("nsize");
    // Of an even number a window has one channel less, and the sum is divided by the number.
    let size = nsize.div_ceil(2) * 2 - 1;
    let params = LrnParams {
        size,
        alpha: if size == nsize { attrs.float("alpha") } else { attrs.float("alpha") * size as f64 / nsize as f64 },
        beta: attrs.float("beta"),
        knorm: attrs.float("knorm"),
    };
    if !matches!(shape.len(), 2 | 4) {
        return Err(shape_error(format!(
            "data must have 4 axes (batch, channel, height, width) or 2 (batch, channel), got {shape}"
        )));
    }
    Ok((params, [shape[0], shape[1], shape[2..].iter().product()]))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (params, split) = params(attrs, signature)?;
    for_floats(signature.inputs[0].dtype, KernelForm::ResponseNorm { params, split })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (params, split) = params(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        lrn(call.par, params, x, split, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn a_window_has_a_channel() {
        let error = OpTest::new("LRN").attr("nsize", "0").f32([1, 2], &[1.0; 2]).error();
        assert!(error.message.contains("nsize"), "{}", error.message);
    }

    /// Recorded from MXNet 1.9.1.
    #[test]
    fn windows_of_an_even_number_and_data_of_two_axes_are_as_in_mxnet() {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        let of = |nsize: &str| {
            let test = OpTest::new("LRN").attr("nsize", nsize);
            test.attr("alpha", "1").attr("beta", "1").attr("knorm", "1")
        };
        let first = |nsize: &str| f32s(&of(nsize).f32([1, 4, 2, 2], &x).run(), [1, 4, 2, 2])[1..5].to_vec();
        assert_close(&first("1"), &[0.5, 0.4, 0.3, 0.235_294_12]);
        assert_close(&first("2"), &[0.666_666_7, 0.666_666_7, 0.545_454_56, 0.444_444_45]);
        assert_close(&first("4"), &[0.133_333_34, 0.181_818_19, 0.193_548_38, 0.190_476_2]);
        assert_close(&first("6"), &[0.053_097_345, 0.082_191_78, 0.097_297_3, 0.104_347_83]);
        let rows = f32s(&of("3").f32([2, 4], &x[..8]).run(), [2, 4]);
        assert_close(&rows[..4], &[0.0, 0.375, 0.352_941_2, 0.5625]);
        let rows = f32s(&of("2").f32([2, 4], &x[..8]).run(), [2, 4]);
        assert_close(&rows[..4], &[0.0, 0.666_666_7, 0.666_666_7, 0.545_454_56]);
        assert!(of("3").f32([2, 4, 2], &x).error().message.contains("4 axes"));
    }
}
