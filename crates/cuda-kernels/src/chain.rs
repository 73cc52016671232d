//! Chains of functions as texts for the compiler: what `elementwise.h` reads from a program at run
//! time is written out, and the compiler leaves the rest away. Addresses, shapes and the numbers of
//! steps stay data, so one text serves all shapes.

use crate::arguments::{ElementOperandArgument, ElementStepArgument};
use crate::elementwise::NUMBER;
use crate::launch::{COMPILED, Computes};
use crate::source;
use mxrt_cuda::KernelSource;
use std::fmt::Write as _;

/// Elements that a thread reads before it writes the first: reads take long, and overlap.
const AT_A_TIME: usize = 4;

/// A kernel for these operands and steps, with the results that it would have as data.
pub(crate) fn text(
    computes: Computes,
    out_dtype: i32,
    operands: &[ElementOperandArgument],
    steps: &[ElementStepArgument],
) -> KernelSource {
    let element = match computes {
        Computes::Single => "float",
        Computes::Double => "double",
        Computes::Whole => "i64",
    };
    let (reads, body) = (reads_of(operands, element), applications_of(steps, element, out_dtype));
    let (name, last) = (COMPILED.to_str().unwrap_or_default(), steps.len().saturating_sub(1));
    let arrays: Vec<String> = (0..operands.len()).map(|i| format!("x{i}[{AT_A_TIME}]")).collect();
    let all = "UNROLLED\n        for (int u = 0; u < ".to_owned() + &format!("{AT_A_TIME}; u++)");
    source::chain(format!(
        "#include \"apply.h\"\n\
         KERNEL void __launch_bounds__(256) {name}(ElementProgram p) {{\n    \
             ROLLED\n    \
             for (i64 first_i = first(); first_i < p.n; first_i += {AT_A_TIME} * stride()) {{\n        \
                 {element} {};\n        \
                 {all} {{\n            \
                     i64 i = first_i + u * stride();\n            \
                     if (i >= p.n) break;\n{reads}        \
                 }}\n        \
                 {all} {{\n            \
                     i64 i = first_i + u * stride();\n            \
                     if (i >= p.n) break;\n{body}            \
                     store<{element}>(p.out, {out_dtype}, i, r{last});\n        \
                 }}\n    \
             }}\n\
         }}\n\
         ENTRY({name})\n",
        arrays.join(", ")
    ))
}

/// The lines that read the operands of an element.
fn reads_of(operands: &[ElementOperandArgument], element: &str) -> String {
    let mut reads = String::new();
    for (i, operand) in operands.iter().enumerate() {
        let at = match operand.strided {
            0 => "i".to_owned(),
            _ => format!("place(p.axes, p.operand[{i}].steps, i)"),
        };
        let dtype = operand.dtype;
        let _ = writeln!(reads, "            x{i}[u] = load<{element}>(p.operand[{i}].at, {dtype}, {at});");
    }
    reads
}

/// The lines that apply the functions to an element.
fn applications_of(steps: &[ElementStepArgument], element: &str, out_dtype: i32) -> String {
    let mut body = String::new();
    for (s, step) in steps.iter().enumerate() {
        let read = |source: i32| match source {
            NUMBER => format!("step_number<{element}>(p.step[{s}].number)"),
            0.. => format!("x{source}[u]"),
            _ => format!("r{}", !source),
        };
        let (function, a, b) = (step.function, read(step.a), read(step.b));
        let parameters = format!("p.step[{s}].p, p.step[{s}].q, {out_dtype} == I64");
        let _ = writeln!(body, "            {element} r{s} = apply<{element}>({function}, {a}, {b}, {parameters});");
    }
    body
}
