//! `_npi_einsum`: products over the axes that subscripts name.

use super::{bind, form, infer_shape, product};
use crate::numpy::contract::{Label, Operand};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[product!(
    "_npi_einsum",
    Inputs::Variadic { count: "num_args", prefix: "data", named: |_| None },
    &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of arrays."),
        AttrDef::new("subscripts", AttrKind::Str, "", "Einstein's notation, such as ij,jk->ik."),
        AttrDef::new("optimize", AttrKind::Int, "0", "For NumPy; pairs are multiplied in order."),
    ],
    einsum,
    "Sums of products in Einstein's notation."
)];

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
