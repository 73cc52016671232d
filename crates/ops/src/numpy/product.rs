//! `dot`, `matmul`, `tensordot`, `einsum`: products that sum over axes.

use super::contract::{Label, Operand, contract, extents_of, product_form};
use crate::execution::in_dtypes;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_tensor::{DType, Shape};

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

const PAIR: Inputs = Inputs::Fixed(&["a", "b"]);

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    product!(
        "_np_dot",
        PAIR,
        &[],
        dot,
        "The sum of products over the last axis of a and the second to last of b, or its only one; of \
         a scalar, the product."
    ),
    OpDef {
        outputs: Outputs::OneNamed("out"),
        ..product!(
            "_npi_matmul",
            PAIR,
            &[],
            matmul,
            "Products of the matrices in the last two axes; the axes before them are broadcast, and a \
             vector is a row on the left and a column on the right."
        )
    },
    product!(
        "_npi_tensordot",
        PAIR,
        &[
            AttrDef::required("a_axes_summed", AttrKind::Shape, "Axes of a to sum over."),
            AttrDef::required("b_axes_summed", AttrKind::Shape, "Axes of b to sum over."),
        ],
        tensordot,
        "The sum of products over some axes of a and as many of b."
    ),
    product!(
        "_npi_tensordot_int_axes",
        PAIR,
        &[AttrDef::required("axes", AttrKind::IntFrom(0), "Number of axes to sum over.")],
        tensordot_int_axes,
        "The sum of products over the last axes of a and the first of b."
    ),
    product!(
        "_npi_einsum",
        Inputs::Variadic { count: "num_args", prefix: "data", named: |_| None },
        &[
            AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of arrays."),
            AttrDef::new("subscripts", AttrKind::Str, "", "Einstein's notation, such as ij,jk->ik."),
            AttrDef::new("optimize", AttrKind::Int, "0", "For NumPy; pairs are multiplied in order."),
        ],
        einsum,
        "Sums of products in Einstein's notation."
    ),
];

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

fn dot(_: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    match (a.len(), b.len()) {
        (0, _) | (_, 0) => paired(shapes, &[]),
        (m, n) => paired(shapes, &[(m - 1, n.saturating_sub(2))]),
    }
}

fn matmul(_: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    if a.is_empty() || b.is_empty() {
        return Err(shape_error(format!("matmul of {a} and {b}: scalars are not allowed, use multiply")));
    }
    const ROWS: Label = 0;
    const SUMMED: Label = 1;
    const COLUMNS: Label = 2;
    // The axes before the matrices, counted from the last one.
    let outer = |rank: usize| (0..rank.saturating_sub(2)).rev().map(|axis| axis as Label + 3).collect::<Vec<Label>>();
    let matrix = |rank: usize, names: [Label; 2], alone: Label| if rank == 1 { vec![alone] } else { names.to_vec() };
    let left = [outer(a.len()), matrix(a.len(), [ROWS, SUMMED], SUMMED)].concat();
    let right = [outer(b.len()), matrix(b.len(), [SUMMED, COLUMNS], SUMMED)].concat();
    let (k, other) = (a[a.len() - 1], b[b.len().saturating_sub(2)]);
    if k != other {
        return Err(shape_error(format!("shapes {a} and {b} cannot be multiplied: {k} columns, but {other} rows")));
    }
    let mut out = outer(a.len().max(b.len()));
    out.extend((a.len() > 1).then_some(ROWS));
    out.extend((b.len() > 1).then_some(COLUMNS));
    Ok((vec![Operand::new(left, a), Operand::new(right, b)], out))
}

fn tensordot(attrs: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    let axes = |name: &str, rank: usize| {
        let given = attrs.ints(name).iter().map(|axis| resolve_axis(*axis, rank));
        given.collect::<Result<Vec<usize>, OpError>>()
    };
    let (of_a, of_b) = (axes("a_axes_summed", a.len())?, axes("b_axes_summed", b.len())?);
    let repeated = |axes: &[usize]| (1..axes.len()).any(|i| axes[..i].contains(&axes[i]));
    if of_a.len() != of_b.len() || repeated(&of_a) || repeated(&of_b) {
        return Err(value_error("a_axes_summed and b_axes_summed must name as many axes, each once"));
    }
    paired(shapes, &of_a.into_iter().zip(of_b).collect::<Vec<_>>())
}

fn tensordot_int_axes(attrs: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let [a, b] = shapes else { return Err(wrong_arity()) };
    let axes = attrs.count("axes");
    if axes > a.len() || axes > b.len() {
        return Err(value_error(format!("axes={axes}, but the arrays have shapes {a} and {b}")));
    }
    paired(shapes, &(0..axes).map(|i| (a.len() - axes + i, i)).collect::<Vec<_>>())
}

/// Labels of the axes that an ellipsis stands for, counted from the last one.
const ELLIPSIS: Label = 1 << 24;

fn einsum(attrs: &Attrs, shapes: &[Shape]) -> Result<(Vec<Operand>, Vec<Label>), OpError> {
    let text: String = attrs.str("subscripts").chars().filter(|c| !c.is_whitespace()).collect();
    let wrong = |what: String| value_error(format!("subscripts {text}: {what}"));
    let (inputs, output) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&*text, None),
    };
    let terms: Vec<&str> = inputs.split(',').collect();
    if terms.len() != shapes.len() {
        return Err(wrong(format!("{} terms for {} arrays", terms.len(), shapes.len())));
    }
    let mut operands = Vec::with_capacity(terms.len());
    let mut widest = 0;
    for (term, shape) in terms.iter().zip(shapes) {
        let (operand, hidden) = operand_of_term(term, shape).map_err(&wrong)?;
        widest = widest.max(hidden);
        operands.push(operand);
    }
    let all: Vec<Label> = operands.iter().flat_map(|o| o.labels.iter().copied()).filter(|l| *l < ELLIPSIS).collect();
    let out = match output {
        Some(output) => output_labels(output, &all, widest).map_err(&wrong)?,
        None => {
            let mut once: Vec<Label> =
                all.iter().copied().filter(|l| all.iter().filter(|o| *o == l).count() == 1).collect();
            once.sort_unstable();
            [hidden_axes(widest), once].concat()
        }
    };
    Ok((operands, out))
}

/// An array with the labels of its axes, and how many of them an ellipsis stands for.
fn operand_of_term(term: &str, shape: &Shape) -> Result<(Operand, usize), String> {
    let (letters, has_ellipsis) = letters(term)?;
    let named = letters.iter().filter(|l| **l != ELLIPSIS).count();
    let hidden = match shape.len().checked_sub(named) {
        Some(hidden) if has_ellipsis || hidden == 0 => hidden,
        _ => return Err(format!("{term} names {named} axes of an array of shape {shape}")),
    };
    let operand = Operand::new(with_hidden_axes(letters, hidden), shape);
    for (i, label) in operand.labels.iter().enumerate() {
        if let Some(j) = operand.labels[..i].iter().position(|l| l == label)
            && shape[i] != shape[j]
            && shape[i] != 1
            && shape[j] != 1
        {
            return Err(format!("axes {j} and {i} of {shape} have one letter, but not one size"));
        }
    }
    Ok((operand, hidden))
}

/// The labels that the output is given. `all` are those of the arrays, whose ellipses stand for up
/// to `widest` axes.
fn output_labels(output: &str, all: &[Label], widest: usize) -> Result<Vec<Label>, String> {
    let (letters, has_ellipsis) = letters(output)?;
    for (i, label) in letters.iter().enumerate().filter(|(_, l)| **l != ELLIPSIS) {
        let letter = char::from_u32(*label).unwrap_or('?');
        if letters[..i].contains(label) {
            return Err(format!("the output names {letter} twice"));
        }
        if !all.contains(label) {
            return Err(format!("the output names {letter}, which no array has"));
        }
    }
    if !has_ellipsis && widest > 0 {
        return Err("the output lacks the ellipsis that the arrays have".into());
    }
    Ok(with_hidden_axes(letters, widest).collect())
}

/// Labels with those of `hidden` axes in the place of the ellipsis.
fn with_hidden_axes(letters: Vec<Label>, hidden: usize) -> impl Iterator<Item = Label> {
    letters.into_iter().flat_map(move |label| if label == ELLIPSIS { hidden_axes(hidden) } else { vec![label] })
}

fn hidden_axes(count: usize) -> Vec<Label> {
    (0..count).rev().map(|i| ELLIPSIS + 1 + i as Label).collect()
}

/// The letters of a term, with [`ELLIPSIS`] for three dots.
fn letters(term: &str) -> Result<(Vec<Label>, bool), String> {
    let (mut all, mut has_ellipsis, mut rest) = (Vec::new(), false, term);
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if has_ellipsis {
                return Err(format!("{term} has two ellipses"));
            }
            (has_ellipsis, rest) = (true, after);
            all.push(ELLIPSIS);
        } else if c.is_ascii_alphabetic() {
            all.push(c as Label);
            rest = &rest[1..];
        } else {
            return Err(format!("{c:?} is neither a letter nor an ellipsis"));
        }
    }
    Ok((all, has_ellipsis))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn a_product_sums_over_the_axes_it_names() {
        let y = OpTest::new("_np_dot").f32([2, 3], &X).f32([3], &[1.0, 0.0, 1.0]).run();
        assert_eq!(f32s(&y, [2]), [4.0, 10.0]);
        assert_eq!(f32s(&OpTest::new("_np_dot").f32([], &[2.0]).f32([2], &X[..2]).run(), [2]), [2.0, 4.0]);
        let y = OpTest::new("_npi_matmul").f32([1, 2, 3], &X).f32([2, 3, 1], &X).run();
        assert_eq!(f32s(&y, [2, 2, 1]), [14.0, 32.0, 32.0, 77.0]);
        let y = OpTest::new("_npi_tensordot").attr("a_axes_summed", "(1, 0)").attr("b_axes_summed", "(1, 0)");
        assert_eq!(f32s(&y.f32([2, 3], &X).f32([2, 3], &X).run(), []), [91.0]);
        let y = OpTest::new("_npi_tensordot_int_axes").attr("axes", "0").f32([2], &X[..2]).f32([2], &X[..2]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 2.0, 4.0]);
        assert!(OpTest::new("_np_dot").f32([2, 3], &X).f32([2], &X[..2]).error().message.contains("(2, 3) and (2,)"));
        assert_eq!(f32s(&OpTest::new("_npi_matmul").f32([2, 0], &[]).f32([0, 2], &[]).run(), [2, 2]), [0.0; 4]);
    }

    #[test]
    fn einsum_knows_diagonals_ellipses_and_chains() {
        let of = |text: &str, args: &str| OpTest::new("_npi_einsum").attr("num_args", args).attr("subscripts", text);
        assert_eq!(f32s(&of("ii->i", "1").f32([2, 2], &X[..4]).run(), [2]), [1.0, 4.0]);
        assert_eq!(f32s(&of("ij", "1").f32([2, 3], &X).run(), [2, 3]), X);
        assert_eq!(f32s(&of("ij->ji", "1").f32([2, 3], &X).run(), [3, 2]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(f32s(&of("...j,...j", "2").f32([2, 3], &X).f32([3], &[1.0, 1.0, 1.0]).run(), [2]), [6.0, 15.0]);
        let chain = of("i,ij,j->", "3").f32([2], &[1.0, 1.0]).f32([2, 3], &X).f32([3], &[1.0, 0.0, 2.0]).run();
        assert_eq!(f32s(&chain, []), [23.0]);
    }

    #[test]
    fn wrong_subscripts_are_errors_that_say_what_is_wrong() {
        for (text, says) in [
            ("i1", "neither a letter"),
            ("i", "names 1 axes"),
            ("ij,jk", "2 terms for 1"),
            ("ij->ii", "twice"),
            ("ij->k", "which no array has"),
            ("......ij", "two ellipses"),
            ("i...->i", "lacks the ellipsis"),
            ("ii", "not one size"),
        ] {
            let test = OpTest::new("_npi_einsum").attr("num_args", "1").attr("subscripts", text).f32([2, 3], &X);
            let error = test.error();
            assert!(error.message.contains(says), "{text}: {}", error.message);
        }
    }
}
