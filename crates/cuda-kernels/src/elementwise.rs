//! Functions of elements, and casts: `elementwise.h`.

use crate::arguments::{
    AXES, AxesArgument, CastArgument, ElementOperandArgument, ElementProgramArgument, ElementStepArgument, OPERANDS,
    STEPS,
};
use crate::chain;
use crate::launch::{Bound, Computes, axes, code, computes, each, known, launch, reads};
use mxrt_cuda::KernelSource;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::elementwise::{Binary, Unary};
use mxrt_kernels::strides;
use mxrt_ops::{DeviceOperands, Elementwise, KernelForm, Signature, StepInput};
use mxrt_tensor::DType;
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Elements that a single function is compiled for.
const LARGE: usize = 1 << 18;
/// The index by which a step reads its own number.
pub(crate) const NUMBER: i32 = -(STEPS as i32) - 1;

/// Numbers of the functions in the text, by kind and name: their rows there, in order.
fn functions() -> &'static HashMap<(&'static str, &'static str), i32> {
    static FUNCTIONS: OnceLock<HashMap<(&str, &str), i32>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let row = |line: &'static str| {
            let (kind, rest) = line.split_once('(')?;
            let (name, _) = rest.split_once(',')?;
            ["UNARY", "BINARY", "WHOLE_UNARY", "WHOLE_BINARY"].contains(&kind).then_some((kind, name))
        };
        include_str!("../cuda/functions.h").lines().filter_map(row).zip(0..).collect()
    })
}

/// A function's number, and its parameters.
fn unary(function: Unary, computes: Computes) -> Option<(i32, f64, f64)> {
    let (p, q) = match function {
        Unary::Clip { low, high } => (low, high),
        Unary::LeakyRelu { slope } | Unary::Elu { slope } => (slope, 0.0),
        Unary::HardSigmoid { alpha, beta } => (alpha, beta),
        Unary::SmoothL1 { sigma } => (sigma, 0.0),
        _ => (0.0, 0.0),
    };
    let name = format!("{function:?}");
    let number = match (computes, function) {
        // Its parameter becomes a whole number first.
        (Computes::Whole, Unary::SmoothL1 { .. }) => None,
        (Computes::Whole, _) => find("WHOLE_UNARY", &name).or_else(|| find("UNARY", &name)),
        _ => find("UNARY", &name),
    };
    Some((number?, p, q))
}

fn find(kind: &str, debug: &str) -> Option<i32> {
    let name = debug.split([' ', '{']).next().unwrap_or(debug);
    functions().get(&(kind, name)).copied()
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    match form {
        KernelForm::Within { dtype, form } => bind_within(*dtype, form, signature),
        KernelForm::Elementwise { .. } | KernelForm::WithNumber { .. } => {
            bind_within(signature.outputs.first()?.dtype, form, signature)
        }
        KernelForm::Cast => {
            let (from, to) = (signature.inputs.first()?, signature.outputs.first()?);
            let n = to.shape.size();
            let (from_dtype, to_dtype) = (code(from.dtype), code(to.dtype));
            (known(from) && known(to)).then(|| {
                Bound::kernel(c"cast", each(n), move |at| CastArgument {
                    to: at.outputs[0].0,
                    from: at.inputs[0].0,
                    n: n as i64,
                    to_dtype,
                    from_dtype,
                })
            })
        }
        _ => None,
    }
}

/// Converts `n` elements of an array to those of another type.
pub(crate) fn convert(
    ctx: &DeviceCtx<'_>,
    (to, to_dtype): (DevicePtr, DType),
    (from, from_dtype): (DevicePtr, DType),
    n: usize,
) -> Result<(), OpError> {
    let Some(grid) = each(n) else { return Ok(()) };
    let (to_dtype, from_dtype) = (code(to_dtype), code(from_dtype));
    launch(ctx, c"cast", grid, &CastArgument { to: to.0, from: from.0, n: n as i64, to_dtype, from_dtype })
}

/// A function of elements that are converted to a type first.
fn bind_within(within: DType, form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let whole = computes(within)?;
    match form {
        KernelForm::Elementwise { program, shapes } => {
            let steps = program.steps.iter().map(|(function, reads)| step(*function, reads, whole));
            bind_steps(&steps.collect::<Option<Vec<_>>>()?, shapes, within, signature)
        }
        KernelForm::WithNumber { function, number, first } => {
            let (a, b) = if *first { (NUMBER, 0) } else { (0, NUMBER) };
            let function = binary(*function, whole)?;
            let step = ElementStepArgument { function, a, b, number: *number, ..NO_STEP };
            bind_steps(&[step], &[], within, signature)
        }
        _ => None,
    }
}

fn binary(function: Binary, computes: Computes) -> Option<i32> {
    let kind = if computes == Computes::Whole { "WHOLE_BINARY" } else { "BINARY" };
    find(kind, &format!("{function:?}"))
}

/// A chain to try the compiler with.
pub(crate) fn example() -> KernelSource {
    chain::text(Computes::Single, code(DType::F32), &[NO_OPERAND], &[NO_STEP])
}

const NO_OPERAND: ElementOperandArgument = ElementOperandArgument { at: 0, dtype: 0, strided: 0, steps: [0; AXES] };
const NO_STEP: ElementStepArgument =
    ElementStepArgument { function: 0, a: 0, b: 0, unused: 0, number: 0.0, p: 0.0, q: 0.0 };

fn step(function: Elementwise, reads: &[StepInput], whole: Computes) -> Option<ElementStepArgument> {
    let source = |i: usize| match reads.get(i) {
        Some(StepInput::Input(k)) => *k as i32,
        Some(StepInput::Step(k)) => !(*k as i32),
        None => NUMBER,
    };
    let plain = ElementStepArgument { a: source(0), b: source(0), ..NO_STEP };
    Some(match function {
        Elementwise::Unary(f) => {
            let (function, p, q) = unary(f, whole)?;
            ElementStepArgument { function, p, q, ..plain }
        }
        Elementwise::Binary(f) => ElementStepArgument { function: binary(f, whole)?, b: source(1), ..plain },
        Elementwise::WithScalar(f, number) => {
            ElementStepArgument { function: binary(f, whole)?, b: NUMBER, number: number.into(), ..plain }
        }
        Elementwise::OfScalar(f, number) => {
            ElementStepArgument { function: binary(f, whole)?, a: NUMBER, number: number.into(), ..plain }
        }
    })
}

/// The axes over which functions of elements go, and the arrays that they read under these shapes,
/// or their own; `None` if one cannot be broadcast to the result.
fn operands_of(
    shapes: &[Vec<usize>],
    signature: &Signature<'_>,
) -> Option<(AxesArgument, [ElementOperandArgument; OPERANDS])> {
    let ([output], inputs) = (signature.outputs, signature.inputs) else { return None };
    let out = &output.shape;
    let shape_of = |i: usize| shapes.get(i).map_or(&inputs[i].shape[..], |s| s);
    let fits = |shape: &[usize]| {
        shape.len() <= out.len() && shape.iter().rev().zip(out.iter().rev()).all(|(n, all)| *n == *all || *n == 1)
    };
    if !(0..inputs.len()).all(|i| fits(shape_of(i))) {
        return None;
    }
    let strides: Vec<Vec<isize>> = (0..inputs.len()).map(|i| strides::broadcast(shape_of(i), out)).collect();
    let of = |i: usize| strides.get(i).map_or(&strides[0][..], |s| s);
    let (axes, all) = axes::<OPERANDS>(out, std::array::from_fn(of))?;
    let mut operand = [NO_OPERAND; OPERANDS];
    for (i, input) in inputs.iter().enumerate() {
        let strided = i32::from(shape_of(i).iter().product::<usize>() != out.size());
        operand[i] = ElementOperandArgument { at: 0, dtype: code(input.dtype), strided, steps: all[i] };
    }
    Some((axes, operand))
}

fn kernel_name(whole: Computes) -> &'static CStr {
    match whole {
        Computes::Single => c"elementwise_f32",
        Computes::Double => c"elementwise_f64",
        Computes::Whole => c"elementwise_i64",
    }
}

fn bind_steps(
    steps: &[ElementStepArgument],
    shapes: &[Vec<usize>],
    within: DType,
    signature: &Signature<'_>,
) -> Option<Bound> {
    let ([output], inputs) = (signature.outputs, signature.inputs) else { return None };
    let whole = computes(within)?;
    let ends = output.dtype == within || output.dtype == DType::Bool;
    if !ends || !inputs.iter().all(|t| reads(t.dtype, within)) {
        return None;
    }
    if inputs.is_empty() || inputs.len() > OPERANDS || steps.len() > STEPS {
        return None;
    }
    let (axes, operand) = operands_of(shapes, signature)?;
    let mut step_list = [NO_STEP; STEPS];
    step_list.iter_mut().zip(steps).for_each(|(place, step)| *place = *step);
    let n = output.shape.size();
    let out_dtype = code(output.dtype);
    let program = ElementProgramArgument {
        out: 0,
        n: n as i64,
        out_dtype,
        operands: inputs.len() as i32,
        steps: steps.len() as i32,
        unused: 0,
        axes,
        operand,
        step: step_list,
    };
    let name = kernel_name(whole);
    let grid = each(n);
    let argument = move |at: &DeviceOperands<'_>| {
        let mut program = program;
        program.out = at.outputs[0].0;
        program.operand.iter_mut().zip(at.inputs).for_each(|(operand, at)| operand.at = at.0);
        program
    };
    // A single function of a few elements is not worth compiling.
    if steps.len() < 2 && n < LARGE {
        return Some(Bound::kernel(name, grid, argument));
    }
    let (operands, steps) = (operand[..inputs.len()].to_vec(), steps.to_vec());
    Some(Bound::or_compiled(name, grid, argument, move || chain::text(whole, out_dtype, &operands, &steps)))
}
