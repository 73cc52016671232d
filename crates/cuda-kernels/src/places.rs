//! Numbers that follow from their places, and choices between arrays: `places.h`.

use crate::arguments::{
    ChooseArgument, DiagonalArgument, FiniteNumbersArgument, LeftOfArgument, RoundPlacesArgument, SpacedArgument,
};
use crate::launch::{Bound, axes, code, each, known};
use mxrt_kernels::strides;
use mxrt_ops::{KernelForm, Signature};
use mxrt_tensor::DType;

/// Distances of diagonals are cut to this: no matrix has as many rows.
const FAR: i64 = 1 << 60;

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let output = signature.outputs.first().filter(|t| known(t))?;
    let (n, dtype) = (output.shape.size(), code(output.dtype));
    match *form {
        KernelForm::Spaced { start, step, end: (last, end) } => {
            let argument = SpacedArgument { to: 0, n: n as i64, last: last as i64, start, step, end, dtype, unused: 0 };
            Some(Bound::kernel(c"spaced", each(n), move |at| SpacedArgument { to: at.outputs[0].0, ..argument }))
        }
        KernelForm::Diagonal { right } => {
            let columns = *output.shape.last()? as i64;
            let right = right.clamp(-FAR, FAR);
            let argument = DiagonalArgument { to: 0, n: n as i64, right, columns, dtype, unused: 0 };
            Some(Bound::kernel(c"diagonal", each(n), move |at| DiagonalArgument { to: at.outputs[0].0, ..argument }))
        }
        KernelForm::LeftOf { right } => bind_left_of(right, signature),
        KernelForm::Choose { numbers } => bind_choose(numbers, signature),
        KernelForm::Rounded { places } => (output.dtype != DType::F16).then(|| {
            Bound::kernel(c"round_places", each(n), move |at| {
                let (to, from) = (at.outputs[0].0, at.inputs[0].0);
                RoundPlacesArgument { to, from, n: n as i64, places, dtype }
            })
        }),
        KernelForm::Finite { numbers } => Some(Bound::kernel(c"finite_numbers", each(n), move |at| {
            let (to, from) = (at.outputs[0].0, at.inputs[0].0);
            FiniteNumbersArgument { to, from, n: n as i64, numbers, dtype, unused: 0 }
        })),
        _ => None,
    }
}

/// Binds the kernel that keeps the numbers of matrices up to a diagonal.
fn bind_left_of(right: i64, signature: &Signature<'_>) -> Option<Bound> {
    let (input, output) = (signature.inputs.first()?, signature.outputs.first()?);
    let [.., rows, columns] = output.shape[..] else { return None };
    let n = output.shape.size();
    let argument = LeftOfArgument {
        to: 0,
        from: 0,
        n: n as i64,
        right: right.clamp(-FAR, FAR),
        rows: rows as i64,
        columns: columns as i64,
        is_vector: i32::from(input.shape.len() == 1),
        size: output.dtype.size() as i32,
        dtype: code(output.dtype),
        unused: 0,
    };
    Some(Bound::kernel(c"left_of", each(n), move |at| LeftOfArgument {
        to: at.outputs[0].0,
        from: at.inputs[0].0,
        ..argument
    }))
}

fn bind_choose(numbers: [Option<f64>; 2], signature: &Signature<'_>) -> Option<Bound> {
    let (condition, output) = (signature.inputs.first().filter(|t| known(t))?, signature.outputs.first()?);
    // The inputs in the places of yes and no.
    let inputs = match numbers {
        [None, None] => [Some(1), Some(2)],
        [None, Some(_)] => [Some(1), None],
        [Some(_), None] => [None, Some(1)],
        [Some(_), Some(_)] => [None, None],
    };
    let of = |input: Option<usize>| signature.inputs.get(input.unwrap_or(0));
    let arrays = [Some(condition), of(inputs[0]), of(inputs[1])];
    let [Some(a), Some(b), Some(c)] = arrays.map(|t| t.map(|t| strides::broadcast(&t.shape, &output.shape))) else {
        return None;
    };
    let (axes, [condition_steps, yes_steps, no_steps]) = axes(&output.shape, [&a, &b, &c])?;
    let n = output.shape.size();
    let argument = ChooseArgument {
        to: 0,
        condition: 0,
        arrays: [0; 2],
        n: n as i64,
        numbers: numbers.map(|number| number.unwrap_or(0.0)),
        dtype: code(output.dtype),
        size: output.dtype.size() as i32,
        condition_dtype: code(condition.dtype),
        strided: i32::from(arrays.iter().flatten().any(|t| t.shape.size() != n)),
        axes,
        condition_steps,
        yes_steps,
        no_steps,
    };
    Some(Bound::kernel(c"choose", each(n), move |at| {
        let mut argument = argument;
        (argument.to, argument.condition) = (at.outputs[0].0, at.inputs[0].0);
        argument.arrays = inputs.map(|input| input.map_or(0, |i| at.inputs[i].0));
        argument
    }))
}
