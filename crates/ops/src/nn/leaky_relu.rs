//! `LeakyReLU`: rectifiers that let something through below zero.

use crate::math::bind_unary;
use crate::prelude::*;
use crate::rewrite::prelu_gamma;
use mxrt_kernels::elementwise::{self, Binary, Unary};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "LeakyReLU",
    aliases: &["_npx_leaky_relu"],
    doc: "Rectifiers that let something through below zero.\n\n\
        prelu takes its slopes from the input gamma: one in all, one a channel, one a row, or \
        (rows, channels) of which either may be 1; a single axis is the channels where it fits both. \
        rrelu uses the middle of its bounds outside training.",
    inputs: Inputs::ByAttrs(|attrs| if is_prelu(attrs) { &["data", "gamma"] } else { &["data"] }),
    outputs: Outputs::Named(|attrs| if attrs.str("act_type") == "rrelu" { &["output", "mask"] } else { &["output"] }),
    attrs: &[
        AttrDef::new(
            "act_type",
            AttrKind::Enum(&["elu", "gelu", "leaky", "prelu", "rrelu", "selu"]),
            "leaky",
            "Which function.",
        ),
        AttrDef::new("slope", AttrKind::Float, "0.25", "Slope below zero, for elu and leaky."),
        AttrDef::new("lower_bound", AttrKind::Float, "0.125", "Lower bound of the slope, for rrelu."),
        AttrDef::new("upper_bound", AttrKind::Float, "0.333999991", "Upper bound of the slope, for rrelu."),
    ],
    infer_shape,
    bind,
    form: |attrs, signature| if is_prelu(attrs) { prelu_form(signature) } else { Ok(None) },
    rewrites: &Rewrites {
        elementwise: |attrs| match function(attrs) {
            None => is_prelu(attrs).then_some(Elementwise::Binary(Binary::Prelu)),
            some => some.map(Elementwise::Unary),
        },
        row_wise,
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn is_prelu(attrs: &Attrs) -> bool {
    attrs.str("act_type") == "prelu"
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let data = shapes.inputs[0].clone();
    shapes.set_output(1, data.clone())?;
    if is_prelu(shapes.attrs) && shapes.rank(1).is_none() && data.rank().is_some_and(|rank| rank > 1) {
        shapes.set_input(1, "gamma", PartialShape::from_dims([data.dim(1)]))?;
    }
    Ok(())
}

/// Gamma as it is broadcast to the data.
fn gamma_shape(gamma: &Shape, data: &Shape) -> Result<Shape, OpError> {
    prelu_gamma(gamma, data).map(|dims| Shape::new(&dims)).ok_or_else(|| {
        shape_error(format!(
            "gamma has shape {gamma} but input {data} needs one value, one for each channel (axis 1), one for each \
             row (axis 0), or (rows, channels) of which either may be 1"
        ))
    })
}

/// Gamma that differs between rows stands in the way of dividing these.
fn row_wise(attrs: &Attrs, signature: &Signature<'_>, divided: &[bool]) -> bool {
    let alike = match signature.inputs {
        [data, gamma] if is_prelu(attrs) => {
            prelu_gamma(&gamma.shape, &data.shape).is_some_and(|dims| dims.first().is_none_or(|rows| *rows == 1))
        }
        _ => true,
    };
    alike && attrs.str("act_type") != "rrelu" && rows_of_data(attrs, signature, divided)
}

/// The function, if it is one of a single element without parameters.
fn function(attrs: &Attrs) -> Option<Unary> {
    match attrs.str("act_type") {
        "elu" => Some(Unary::Elu { slope: attrs.float("slope") }),
        "gelu" => Some(Unary::Gelu),
        "selu" => Some(Unary::Selu),
        "leaky" => Some(Unary::LeakyRelu { slope: attrs.float("slope") }),
        _ => None,
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    if let Some(function) = function(attrs) {
        return bind_unary(function, signature);
    }
    match attrs.str("act_type") {
        "rrelu" => bind_rrelu((attrs.float("lower_bound") + attrs.float("upper_bound")) / 2.0, signature),
        _ => bind_prelu(signature),
    }
}

fn prelu_form(signature: &Signature<'_>) -> MaybeForm {
    let (data, gamma) = (&signature.inputs[0], &signature.inputs[1]);
    let slopes = gamma_shape(&gamma.shape, &data.shape)?;
    let program = ElementwiseProgram {
        steps: vec![(Elementwise::Binary(Binary::Prelu), vec![StepInput::Input(0), StepInput::Input(1)])],
    };
    for_floats(data.dtype, KernelForm::Elementwise { program, shapes: vec![data.shape.to_vec(), slopes.to_vec()] })
}

fn bind_prelu(signature: &Signature<'_>) -> BoundKernel {
    let broadcast = gamma_shape(&signature.inputs[1].shape, &signature.inputs[0].shape)?;
    let cost = elementwise_ns(signature, binary_picoseconds(Binary::Prelu, signature));
    dispatch!(signature.inputs[0].dtype, float, T => Ok(costed_kernel_fn("plain", cost, move |call| {
        let ([data, gamma], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (x, slopes) = (elements::<T>(data)?, elements::<T>(gamma)?);
        let out = elements_mut(out)?;
        elementwise::binary_broadcast(call.par, Binary::Prelu, x, data.shape, slopes, &broadcast, out, data.shape);
        Ok(())
    })))
}

/// The second output is the slope of every element.
fn bind_rrelu(slope: f64, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        use mxrt_kernels::Element;
        let x = elements::<T>(&call.inputs[0])?;
        let [out, mask] = &mut *call.outputs else { return Err(wrong_arity()) };
        elementwise::unary(call.par, Unary::LeakyRelu { slope }, x, elements_mut(out)?);
        let (above, below) = (<T as Element>::ONE, T::from_f64(slope));
        for (m, x) in elements_mut::<T>(mask)?.iter_mut().zip(x) {
            *m = if *x > <T as Element>::ZERO { above } else { below };
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn prelu_takes_one_slope_a_channel() {
        let y = OpTest::new("LeakyReLU")
            .attr("act_type", "prelu")
            .f32([1, 2, 2], &[-1.0, 2.0, -3.0, 4.0])
            .f32([2], &[0.5, 0.1])
            .run();
        assert_close(&f32s(&y, [1, 2, 2]), &[-0.5, 2.0, -0.3, 4.0]);
    }

    fn slopes<const D: usize, const G: usize>(data: [usize; D], gamma: [usize; G]) -> OpTest {
        let numbers: Vec<f32> = (1..=gamma.iter().product::<usize>()).map(|n| n as f32).collect();
        let ones = vec![-1.0; data.iter().product()];
        OpTest::new("LeakyReLU").attr("act_type", "prelu").f32(data, &ones).f32(gamma, &numbers)
    }

    fn used<const D: usize, const G: usize>(data: [usize; D], gamma: [usize; G]) -> Vec<u32> {
        f32s(&slopes(data, gamma).run(), data).iter().map(|y| -y as u32).collect()
    }

    fn refused<const D: usize, const G: usize>(data: [usize; D], gamma: [usize; G]) {
        let error = slopes(data, gamma).error();
        assert!(error.message.contains("gamma has shape"), "{data:?} {gamma:?}: {}", error.message);
    }

    /// MXNet 1.9.1 computes this for these shapes.
    #[test]
    fn axes_of_gamma_are_matched_with_channels_then_rows() {
        assert_eq!(used([2, 3, 1], [2, 3]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(used([2, 3, 2], [1, 3]), [1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3]);
        assert_eq!(used([2, 3, 2], [2, 1]), [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
        assert_eq!(used([2, 3], [2]), [1, 1, 1, 2, 2, 2]);
        assert_eq!(used([3, 2, 1], [3]), [1, 1, 2, 2, 3, 3]);
        assert_eq!(used([3, 3], [3]), [1, 2, 3, 1, 2, 3, 1, 2, 3]);
        assert_eq!(used([4], [4]), [1, 2, 3, 4]);
        assert_eq!(used([2, 3, 1], [1, 1]), [1; 6]);
        refused([1, 2, 2], [3]);
        refused([2, 3, 2], [2, 3, 2]);
        refused([2, 3, 2], [3, 2]);
        refused([2, 3, 2], [1, 1, 1]);
        refused([4], [3]);
        refused([2, 3, 3], [3, 3]);
        refused([2, 3, 2], [1, 2]);
    }

    #[test]
    fn outside_training_rrelu_uses_the_middle_of_its_bounds() {
        let y = OpTest::new("LeakyReLU")
            .attr("act_type", "rrelu")
            .attr("lower_bound", "0.2")
            .attr("upper_bound", "0.4")
            .f32([2], &[-10.0, 1.0])
            .run_all();
        assert_close(&f32s(&y[0], [2]), &[-3.0, 1.0]);
        assert_eq!(y.len(), 2);
    }
}
