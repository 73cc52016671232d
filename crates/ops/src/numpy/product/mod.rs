//! `dot`, `matmul`, `tensordot`, `einsum`: products that sum over axes.

pub mod dot;
pub mod einsum;
pub mod matmul;
pub mod tensordot;

use super::contract::{Label, Operand, contract, extents_of, product_form};
use crate::execution::in_dtypes;
use crate::prelude::*;

/// The operands with their axes named, and the axes of the result.
type Plan = fn(&Attrs, &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError>;

macro_rules! product {
    ($name:literal, $inputs:expr, $attrs:expr, $plan:ident, $doc:literal) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: $inputs,
            attrs: $attrs,
            infer_shape: |shapes| infer_shape(shapes, $plan),
            infer_dtype: |dtypes| dtypes.all_same(),
            bind: |attrs, signature| bind($plan, attrs, signature),
            form: |attrs, signature| form($plan, attrs, signature),
            ..OpDef::BASE
        }
    };
}
use product;

const PAIR: Inputs = Inputs::Fixed(&["a", "b"]);

fn infer_shape(shapes: &mut Shapes<'_>, plan: Plan) -> Result<(), OpError> {
    let mut known = Vec::with_capacity(shapes.inputs.len());
    for i in 0..shapes.inputs.len() {
        let Some(shape) = shapes.input(i) else { return Ok(()) };
        known.push(shape);
    }
    let (operands, out) = plan(shapes.attrs, &known)?;
    let extents = extents_of(&operands)?;
    let extent = |label: &Label| extents.iter().find(|(l, _)| l == label).map_or(1, |(_, n)| *n);
    shapes.set_output(0, out.iter().map(extent).collect::<Shape>())
}

/// The form of products of two operands, if their axes can be joined to those of matrices.
fn form(plan: Plan, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shapes: Vec<Shape> = signature.inputs.iter().map(|t| t.shape.clone()).collect();
    let (operands, out) = plan(attrs, &shapes)?;
    let form = product_form(&operands, &out)?;
    Ok(match signature.inputs[0].dtype {
        dtype if dtype.is_float() => form,
        _ => form.map(|form| form.within(DType::F64)),
    })
}

fn bind(plan: Plan, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shapes: Vec<Shape> = signature.inputs.iter().map(|t| t.shape.clone()).collect();
    let (operands, out) = plan(attrs, &shapes)?;
    let within = match signature.inputs[0].dtype {
        DType::F16 => DType::F32,
        dtype if dtype.is_float() => dtype,
        _ => DType::F64,
    };
    in_dtypes(
        signature,
        |_| within,
        |_| within,
        |signature| {
            let isa = signature.options.isa;
            dispatch!(within, wide, T => Ok(kernel_fn(signature, move |call| {
                let values = call.inputs.iter().map(elements::<T>).collect::<Result<Vec<_>, OpError>>()?;
                contract(call.par, isa, &operands, &values, &out, elements_mut(&mut call.outputs[0])?)
            })))
        },
    )
}

/// Labels of the axes of two operands; those that are summed have one label in both.
fn paired(shapes: &[Shape], summed: &[(usize, usize)]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    let left = 0..a.len() as Label;
    let second = |axis: usize| match summed.iter().find(|(_, of_b)| *of_b == axis) {
        Some((of_a, _)) => *of_a as Label,
        None => (a.len() + axis) as Label,
    };
    let right: Vec<Label> = (0..b.len()).map(second).collect();
    if let Some((i, j)) = summed.iter().find(|(i, j)| a[*i] != b[*j]) {
        return Err(shape_error(format!(
            "shapes {a} and {b} cannot be multiplied: axis {i} of the first has size {}, axis {j} of the \
             second {}",
            a[*i], b[*j]
        )));
    }
    let is_summed = |label: &Label| summed.iter().any(|(of_a, _)| *of_a as Label == *label);
    let out = left.clone().chain(right.iter().copied()).filter(|label| !is_summed(label)).collect();
    Ok((vec![Operand::new(left, a), Operand::new(right, b)], out))
}
