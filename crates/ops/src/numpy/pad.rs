//! Elements added at the ends of axes.

use crate::prelude::*;
use crate::shape::pad::{bind_padded, padded_form};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_pad",
    doc: "Adds elements at both ends of every axis: a constant, the edge, a reflection with or without \
          the edge (symmetric, reflect), or the extreme along the axis.",
    attrs: &[
        AttrDef::required(
            "pad_width",
            AttrKind::Str,
            "Tuples of the numbers before and after each axis: ((1, 1), (0, 2)).",
        ),
        AttrDef::new(
            "mode",
            AttrKind::Enum(&["constant", "edge", "reflect", "symmetric", "maximum", "minimum"]),
            "constant",
            "What is added.",
        ),
        AttrDef::new("constant_value", AttrKind::Float, "0", "The constant.").wide(),
        AttrDef::new("reflect_type", AttrKind::Str, "even", "Only even is possible."),
    ],
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let widths = widths(shapes.attrs, dims.len())?;
        let mut out = Vec::with_capacity(dims.len());
        for (n, [before, after]) in dims.iter().zip(widths) {
            let whole = n.map(|n| n.checked_add(before)?.checked_add(after));
            match whole {
                Some(None) => return Err(value_error("pad_width is too large")),
                Some(Some(0)) | None => out.push(whole.flatten()),
                Some(Some(total)) => {
                    if *n == Some(0) && shapes.attrs.str("mode") != "constant" {
                        return Err(value_error(format!(
                            "an axis without elements cannot be padded with mode {}",
                            shapes.attrs.str("mode")
                        )));
                    }
                    out.push(Some(total));
                }
            }
        }
        shapes.set_output(0, PartialShape::from_dims(out))
    },
    bind,
    form,
    ..OpDef::BASE
}];

/// The numbers before and after every axis. As in NumPy one pair or number is that of all axes.
fn widths(attrs: &Attrs, rank: usize) -> Result<Vec<[usize; 2]>, OpError> {
    let text = attrs.str("pad_width");
    let wrong = || value_error(format!("pad_width={text}: expected a pair of numbers for each of {rank} axes"));
    let mut numbers = Vec::new();
    for word in text.split(|c: char| matches!(c, '(' | ')' | '[' | ']' | ',') || c.is_whitespace()) {
        if !word.is_empty() {
            numbers.push(word.parse::<usize>().map_err(|_| wrong())?);
        }
    }
    match numbers[..] {
        [one] => Ok(vec![[one, one]; rank]),
        [before, after] => Ok(vec![[before, after]; rank]),
        _ if numbers.len() == 2 * rank => Ok(numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()),
        _ => Err(wrong()),
    }
}

/// The form of a constant, of edges, and of reflections that turn once.
fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (data, mode) = (&signature.inputs[0], attrs.str("mode"));
    let widths: Vec<(usize, usize)> =
        widths(attrs, data.shape.len())?.iter().map(|[before, after]| (*before, *after)).collect();
    let shows = |edges: usize| widths.iter().zip(data.shape.iter()).all(|((a, b), n)| *a.max(b) < n + edges);
    let is_known = match mode {
        "constant" | "edge" => true,
        "reflect" => shows(0),
        "symmetric" => shows(1),
        _ => false,
    };
    if !is_known || attrs.str("reflect_type") != "even" {
        return Ok(None);
    }
    padded_form(signature, &widths, mode, attrs.float("constant_value"))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.to_vec();
    let widths = widths(attrs, shape.len())?;
    if attrs.str("reflect_type") != "even" {
        return Err(not_implemented("reflect_type must be even, as in MXNet"));
    }
    let mode = match attrs.get("mode") {
        AttrValue::Word(word) => *word,
        _ => "constant",
    };
    let constant = attrs.float("constant_value");
    if !matches!(mode, "maximum" | "minimum") {
        return bind_padded(
            signature,
            widths.iter().map(|[before, after]| (*before, *after)).collect(),
            mode,
            constant,
        );
    }
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let mut data = ReadElements::Borrowed(elements::<T>(&call.inputs[0])?);
        let mut extents = shape.clone();
        for axis in 0..extents.len() {
            let (before, n) = (widths[axis][0], extents[axis]);
            let total = n + before + widths[axis][1];
            let split = split_around(axis, &extents);
            data = ReadElements::Made(padded(call.par, &data, split, [before, total], mode == "maximum"));
            extents[axis] = total;
        }
        elements_mut::<T>(&mut call.outputs[0])?.copy_from_slice(&data);
        Ok(())
    })))
}

/// One axis padded with the extreme along it.
fn padded<T: Element>(
    par: &dyn Par,
    x: &[T],
    [outer, n, inner]: [usize; 3],
    [before, total]: [usize; 2],
    largest: bool,
) -> Scratch<T> {
    let mut out = Scratch::<T>::new(par, outer * total * inner);
    let better = |a: T, b: T| if largest == (b > a) { b } else { a };
    for block in 0..outer {
        let rows = &x[block * n * inner..(block + 1) * n * inner];
        for i in 0..total {
            let row = &mut out[(block * total + i) * inner..][..inner];
            if (before..before + n).contains(&i) {
                row.copy_from_slice(&rows[(i - before) * inner..][..inner]);
                continue;
            }
            for (k, out) in row.iter_mut().enumerate() {
                let column = (0..n).map(|j| rows[j * inner + k]);
                *out = column.reduce(better).unwrap_or(T::ZERO);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn every_mode_adds_its_own() {
        let of = |mode: &str| {
            let test = OpTest::new("_npi_pad").attr("pad_width", "((0, 0), (2, 1))").attr("mode", mode);
            f32s(&test.f32([1, 3], &[1.0, 3.0, 2.0]).run(), [1, 6])
        };
        assert_eq!(of("constant"), [0.0, 0.0, 1.0, 3.0, 2.0, 0.0]);
        assert_eq!(of("edge"), [1.0, 1.0, 1.0, 3.0, 2.0, 2.0]);
        assert_eq!(of("reflect"), [2.0, 3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!(of("symmetric"), [3.0, 1.0, 1.0, 3.0, 2.0, 2.0]);
        assert_eq!(of("maximum"), [3.0, 3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!(of("minimum"), [1.0, 1.0, 1.0, 3.0, 2.0, 1.0]);
        let error = OpTest::new("_npi_pad").attr("pad_width", "((-1, 0),)").f32([1], &[1.0]).error();
        assert!(error.message.contains("pad_width"), "{}", error.message);
    }
}
