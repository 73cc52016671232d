//! Element-wise operators on blocked operands: `_scale_shift`, relu, clip, addition.

use super::{in_lines, infer_from_layout, shape_of, takes_lines};
use crate::prelude::*;
use mxrt_kernels::activation::Activation;
use mxrt_kernels::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape, Pointwise, pointwise};
use mxrt_tensor::TensorType;

const ACT_TYPE: AttrDef = AttrDef::new("act_type", AttrKind::Str, "none", "Activation applied last.");

const ONE_IN_LINES: &Rewrites = &Rewrites { lines: |_, signature| takes_lines(signature, 1), ..Rewrites::NONE };

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_blocked_scale_shift",
        doc: "`_scale_shift` on blocked data.",
        inputs: Inputs::Fixed(&["data", "scale", "shift"]),
        attrs: &[AttrDef::new("axis", AttrKind::Int, "1", "The axis of channels."), ACT_TYPE, LAYOUTS, OUT_LAYOUT],
        infer_shape: |shapes| infer_from_layout(shapes),
        bind: |attrs, signature| bind(attrs, signature, activation_named(attrs), PointwiseOperands::ScaleShift),
        internal: true,
        rewrites: ONE_IN_LINES,
        ..OpDef::BASE
    },
    OpDef {
        name: "_blocked_activation",
        doc: "`Activation` with act_type relu on blocked data.",
        attrs: &[ACT_TYPE, LAYOUTS, OUT_LAYOUT],
        infer_shape: |shapes| infer_from_layout(shapes),
        bind: |attrs, signature| bind(attrs, signature, Activation::Relu, PointwiseOperands::None),
        internal: true,
        rewrites: ONE_IN_LINES,
        ..OpDef::BASE
    },
    OpDef {
        name: "_blocked_clip",
        doc: "`clip` on blocked data.",
        attrs: &[
            AttrDef::required("a_min", AttrKind::Float, "Lowest value."),
            AttrDef::required("a_max", AttrKind::Float, "Highest value."),
            LAYOUTS,
            OUT_LAYOUT,
        ],
        infer_shape: |shapes| infer_from_layout(shapes),
        bind: |attrs, signature| {
            let (lo, hi) = (attrs.float("a_min") as f32, attrs.float("a_max") as f32);
            bind(attrs, signature, Activation::Clip { lo, hi }, PointwiseOperands::None)
        },
        internal: true,
        rewrites: ONE_IN_LINES,
        ..OpDef::BASE
    },
    OpDef {
        name: "_blocked_add",
        doc: "`elemwise_add` on blocked data.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        attrs: &[LAYOUTS, OUT_LAYOUT],
        ignores_unknown_attrs: true,
        infer_shape: |shapes| infer_from_layout(shapes),
        bind: |attrs, signature| bind(attrs, signature, Activation::None, PointwiseOperands::Add),
        internal: true,
        rewrites: &Rewrites { lines: |_, signature| takes_lines(signature, 2), ..Rewrites::NONE },
        ..OpDef::BASE
    },
];

/// The operands besides the data.
#[derive(Clone, Copy, PartialEq)]
enum PointwiseOperands {
    None,
    ScaleShift,
    Add,
}

fn activation_named(attrs: &Attrs) -> Activation {
    if attrs.str("act_type") == "relu" { Activation::Relu } else { Activation::None }
}

/// The offer of an element-wise operator whose first `blocked` inputs are data and whose others are
/// plain.
pub(crate) fn form(op: &'static str, signature: &Signature<'_>, blocked: usize) -> Option<BlockedForm> {
    let first = signature.inputs.first()?;
    let same = |t: &TensorType| t == first;
    if first.dtype != DType::F32 || !signature.inputs.get(..blocked)?.iter().all(same) {
        return None;
    }
    let layout = Layout::Blocked(BlockedLayout::plain_image(&first.shape)?);
    let mut inputs = vec![Layout::Plain; signature.inputs.len()];
    inputs.iter_mut().take(blocked).for_each(|l| *l = layout);
    Some(BlockedForm { op, inputs, from_blocked: None, output: layout, starts: false })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, activation: Activation, operands: PointwiseOperands) -> BoundKernel {
    let (inputs, output) = layouts(attrs)?;
    let x = shape_of(inputs.first(), signature)?;
    let y = shape_of(Some(&output), signature)?;
    let add = if operands == PointwiseOperands::Add { Some(shape_of(inputs.get(1), signature)?) } else { None };
    let blocked = |s: &BlockedShape| (s.block == BLOCK || s.in_lines()) && s.same_size(&y);
    if !blocked(&x) || !add.as_ref().is_none_or(blocked) {
        return Err(value_error("the operands of an element-wise operator differ in size or layout"));
    }
    let isa = signature.options.isa;
    let name = isa.name().to_owned() + in_lines(&x, &y);
    Ok(costed_kernel_fn(name, streaming_ns(signature), move |call| {
        let ([data, rest @ ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let mut what = Pointwise { activation, ..Pointwise::default() };
        match (operands, rest) {
            (PointwiseOperands::None, []) => {}
            (PointwiseOperands::ScaleShift, [scale, shift]) => {
                what.scale = Some(scale.as_slice()?);
                what.shift = Some(shift.as_slice()?);
            }
            (PointwiseOperands::Add, [other]) => {
                what.add = add.map(|shape| Ok::<_, OpError>(Blocked::new(shape, other.as_slice()?))).transpose()?;
            }
            _ => return Err(wrong_arity()),
        }
        let x = Blocked::new(x, data.as_slice()?);
        pointwise(isa, x, what, &mut BlockedMut::new(y, out.as_mut_slice()?), call.par);
        Ok(())
    }))
}
