//! `_npx_reshape`: another shape, by codes for axes that are copied, dropped, joined or split.

use super::{IDENTITY, ORDER, check_order, misfit};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npx_reshape",
    aliases: &["_npi_reshape"],
    doc: "The same elements in another shape: -1 stands for what is left, -2 copies an axis, -3 \
          drops an axis of size 1, -4 copies all that follow, -5 joins two, -6 cuts one into the \
          two that follow.",
    attrs: &[
        AttrDef::required("newshape", AttrKind::Shape, "The new shape."),
        AttrDef::new("reverse", AttrKind::Bool, "False", "Match the axes from the last one."),
        ORDER,
    ],
    infer_shape: infer_extended_reshape,
    ..IDENTITY
}];

fn infer_extended_reshape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    check_order(shapes.attrs)?;
    let Some(data) = shapes.input(0) else { return Ok(()) };
    let newshape = shapes.attrs.ints("newshape");
    let reverse = shapes.attrs.bool("reverse");
    let (mut source, mut target) = (data.to_vec(), newshape.to_vec());
    if reverse {
        source.reverse();
        target.reverse();
    }
    let mut made = extended_shape(&source, &target).ok_or_else(|| misfit(&data, newshape))?;
    if reverse {
        made.reverse();
    }
    shapes.set_output(0, Shape::from(made))
}

/// The shape that the codes of `_npx_reshape` make; `None` if they do not fit.
fn extended_shape(source: &[usize], target: &[i64]) -> Option<Vec<usize>> {
    let mut rest = source;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let mut made: Vec<Option<usize>> = Vec::with_capacity(target.len());
    let mut codes = target.iter();
    while let Some(code) = codes.next() {
        match code {
            // What is left may be more axes than one, so there need not be one to leave out.
            -1 => {
                take(1);
                made.push(None);
            }
            -2 => made.push(Some(take(1)?[0])),
            -3 => {
                (take(1)?[0] == 1).then_some(())?;
            }
            -4 => {
                while let Some(taken) = take(1) {
                    made.push(Some(taken[0]));
                }
            }
            -5 => made.push(Some(take(2)?.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?)),
            -6 => {
                let whole = take(1)?[0];
                made.extend(halves(whole, *codes.next()?, *codes.next()?)?.map(Some));
            }
            extent => {
                take(1);
                made.push(Some(usize::try_from(*extent).ok()?));
            }
        }
    }
    filled(made, source.iter().product())
}

/// Two extents that an extent is split into; one of them may be -1.
fn halves(whole: usize, first: i64, second: i64) -> Option<[usize; 2]> {
    let given = |n: i64| usize::try_from(n).ok();
    let (a, b) = match (given(first), given(second)) {
        (Some(a), Some(b)) => (a, b),
        (None, Some(b)) if first == -1 && b > 0 => (whole / b, b),
        (Some(a), None) if second == -1 && a > 0 => (a, whole / a),
        _ => return None,
    };
    (a.checked_mul(b) == Some(whole)).then_some([a, b])
}

/// Extents for `size` elements, of which one may follow from the others.
fn filled(made: Vec<Option<usize>>, size: usize) -> Option<Vec<usize>> {
    let known = made.iter().flatten().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    let missing = match made.iter().filter(|d| d.is_none()).count() {
        0 => (known == size).then_some(0)?,
        1 => (known > 0 && size.is_multiple_of(known)).then(|| size / known)?,
        _ => return None,
    };
    Some(made.into_iter().map(|d| d.unwrap_or(missing)).collect())
}

#[cfg(test)]
mod tests {
    use super::extended_shape;

    #[test]
    fn the_codes_of_an_extended_shape_stand_for_axes() {
        let of = |target: &[i64]| extended_shape(&[2, 3, 4], target);
        assert_eq!(of(&[-2, -1]), Some(vec![2, 12]));
        assert_eq!(of(&[-5, -4]), Some(vec![6, 4]));
        assert_eq!(of(&[-6, 1, 2, -4]), Some(vec![1, 2, 3, 4]));
        assert_eq!(of(&[-6, -1, 2, -2, -2]), Some(vec![1, 2, 3, 4]));
        assert_eq!(extended_shape(&[1, 3], &[-3, 3]), Some(vec![3]));
        for wrong in [&[-3, 12][..], &[-6, -1, -1, -4], &[5, -1], &[-2, -2, -2, -2], &[-6, 2]] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }
}
