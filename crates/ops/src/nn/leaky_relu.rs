//! `LeakyReLU`: rectifiers that let something through below zero.

use crate::math::bind_unary;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::elementwise::{self, Binary, Unary};
use mxrt_tensor::{PartialShape, Shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "LeakyReLU",
    aliases: &["_npx_leaky_relu"],
    doc: "Rectifiers that let something through below zero.\n\n\
        prelu takes its slopes from the input gamma, one a channel or one in all; rrelu uses the \
        middle of its bounds outside training.",
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
    rewrites: &Rewrites {
        elementwise: |attrs| match function(attrs) {
            None => is_prelu(attrs).then_some(Elementwise::Binary(Binary::Prelu)),
            some => some.map(Elementwise::Unary),
        },
        row_wise: |attrs, signature, divided| {
            attrs.str("act_type") != "rrelu" && rows_of_data(attrs, signature, divided)
        },
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

/// Gamma as it is broadcast to the data: one value a channel stands at axis 1.
fn gamma_shape(gamma: &Shape, data: &Shape) -> Result<Shape, OpError> {
    let mut shape = gamma.clone();
    if gamma.len() == 1 && data.len() > 1 {
        shape = std::iter::repeat_n(1, data.len()).collect();
        shape.dims_mut()[1] = gamma[0];
    }
    let fits = shape.len() <= data.len()
        && shape.iter().rev().zip(data.iter().rev()).all(|(have, want)| *have == 1 || have == want);
    if !fits {
        return Err(shape_error(format!(
            "gamma has shape {gamma} but input {data} needs one value, or one for each channel \
             (axis 1)"
        )));
    }
    Ok(shape)
}

/// Those that are functions of one element without parameters.
fn function(attrs: &Attrs) -> Option<Unary> {
    match attrs.str("act_type") {
        "elu" => Some(Unary::Elu { slope: attrs.float("slope") }),
        "gelu" => Some(Unary::Gelu),
        "selu" => Some(Unary::Selu),
        "leaky" => Some(Unary::LeakyRelu { slope: attrs.float("slope") }),
        _ => None,
    }
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    if let Some(function) = function(attrs) {
        return bind_unary(function, signature);
    }
    match attrs.str("act_type") {
        "rrelu" => bind_rrelu((attrs.float("lower_bound") + attrs.float("upper_bound")) / 2.0, signature),
        _ => bind_prelu(signature),
    }
}

fn bind_prelu(signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
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
fn bind_rrelu(slope: f64, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
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
        let error =
            OpTest::new("LeakyReLU").attr("act_type", "prelu").f32([1, 2, 2], &[0.0; 4]).f32([3], &[0.0; 3]).error();
        assert!(error.message.contains("gamma has shape (3,)"), "{}", error.message);
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
