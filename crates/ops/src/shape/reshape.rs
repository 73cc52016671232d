//! `Reshape`: the same elements under another shape.

use super::{PartialDims, bind_copy, known_product};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Reshape",
    aliases: &["reshape"],
    doc: "Gives the elements another shape.\n\n\
        In shape, 0 keeps an extent, -1 stands for what is left over, -2 keeps all remaining \
        extents, -3 joins two extents and -4 splits one into the two that follow. With reverse the \
        codes are matched from the last axis.",
    attrs: &[
        AttrDef::new("shape", AttrKind::Shape, "()", "The new extents and codes."),
        AttrDef::new("reverse", AttrKind::Bool, "False", "Match the codes from the last axis."),
        AttrDef::new(
            "target_shape",
            AttrKind::Shape,
            "()",
            "Older form of shape: one extent may be 0 and is inferred.",
        ),
        AttrDef::new("keep_highest", AttrKind::Bool, "False", "With target_shape: keep the first extent."),
    ],
    infer_shape,
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let attrs = shapes.attrs;
    if let Some(data) = shapes.dims(0) {
        let out = if !attrs.ints("shape").is_empty() {
            reshaped(&data, attrs.ints("shape"), attrs.bool("reverse"))?
        } else if !attrs.ints("target_shape").is_empty() {
            target(&data, attrs.ints("target_shape"), attrs.bool("keep_highest"))?
        } else {
            return Err(value_error("shape is empty: give the new extents, for example shape=(0, -1)"));
        };
        if let (Some(have), Some(want)) = (known_product(&data), known_product(&out))
            && have != want
        {
            let (from, to) = (PartialShape::from_dims(data), PartialShape::from_dims(out));
            return Err(shape_error(format!(
                "an array of shape {from} has {have} elements and cannot be reshaped to {to}, \
                 which has {want}"
            )));
        }
        shapes.set_output(0, PartialShape::from_dims(out))?;
    }
    learn_input(shapes)
}

/// One unknown extent of the input follows from a complete output.
fn learn_input(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(mut data), Some(out)) = (shapes.dims(0), shapes.outputs.first().and_then(|s| s.complete())) else {
        return Ok(());
    };
    let unknown: Vec<usize> = (0..data.len()).filter(|i| data[*i].is_none()).collect();
    let [axis] = unknown[..] else { return Ok(()) };
    data[axis] = Some(1);
    let (Some(rest), Some(total)) = (known_product(&data), out.checked_size()) else { return Ok(()) };
    if rest != 0 && total % rest == 0 {
        data[axis] = Some(total / rest);
        shapes.set_input(0, "data", PartialShape::from_dims(data))?;
    }
    Ok(())
}

/// Applies the codes of `shape` to the extents of the input.
pub(crate) fn reshaped(data: &[Option<usize>], codes: &[i64], reverse: bool) -> Result<PartialDims, OpError> {
    if !reverse {
        return apply_codes(data, codes);
    }
    let data: PartialDims = data.iter().rev().copied().collect();
    let codes: Vec<i64> = codes.iter().rev().copied().collect();
    let mut out = apply_codes(&data, &codes)?;
    out.reverse();
    Ok(out)
}

fn apply_codes(data: &[Option<usize>], codes: &[i64]) -> Result<PartialDims, OpError> {
    let mut out = PartialDims::new();
    let mut inferred = None;
    let mut source = data.iter().copied();
    let missing = |code: i64| shape_error(format!("code {code} in shape finds no extent left in the input"));
    let mut codes = codes.iter().copied();
    while let Some(code) = codes.next() {
        match code {
            0 => out.push(source.next().ok_or_else(|| missing(0))?),
            -1 => {
                if inferred.replace(out.len()).is_some() {
                    return Err(value_error("shape holds -1 twice: only one extent can be inferred"));
                }
                out.push(Some(1));
                source.next();
            }
            -2 => out.extend(source.by_ref()),
            -3 => {
                let (a, b) = source.next().zip(source.next()).ok_or_else(|| missing(-3))?;
                out.push(a.zip(b).and_then(|(a, b)| a.checked_mul(b)));
            }
            -4 => {
                let whole = source.next().ok_or_else(|| missing(-4))?;
                let (a, b) = codes.next().zip(codes.next()).ok_or_else(|| {
                    value_error("code -4 in shape must be followed by the two extents it splits into")
                })?;
                let (a, b) = split(whole, a, b)?;
                out.extend([a, b]);
            }
            extent => {
                out.push(Some(given_extent(extent)?));
                source.next();
            }
        }
    }
    if let Some(at) = inferred {
        out[at] = left_over(data, &out)?;
    }
    Ok(out)
}

/// An extent that is no code.
fn given_extent(extent: i64) -> Result<usize, OpError> {
    usize::try_from(extent).map_err(|_| value_error(format!("shape holds {extent}; codes are 0, -1, -2, -3 and -4")))
}

/// The extent that -1 stands for; `out` has a 1 in its place.
fn left_over(data: &[Option<usize>], out: &[Option<usize>]) -> Result<Option<usize>, OpError> {
    let (Some(have), Some(rest)) = (known_product(data), known_product(out)) else { return Ok(None) };
    if rest == 0 {
        return Ok(Some(0));
    }
    if have % rest != 0 {
        return Err(shape_error(format!(
            "{have} elements cannot be divided evenly: the other extents of shape make {rest}"
        )));
    }
    Ok(Some(have / rest))
}

fn split(whole: Option<usize>, a: i64, b: i64) -> Result<(Option<usize>, Option<usize>), OpError> {
    let extent = |v: i64| match v {
        -1 => Ok(None),
        v => usize::try_from(v).map(Some).map_err(|_| value_error(format!("code -4 in shape splits into {a} and {b}"))),
    };
    let bad = || shape_error(format!("code -4 in shape cannot split an extent into {a} and {b}"));
    let divide = |whole: Option<usize>, by: usize| match whole {
        None => Ok(None),
        Some(n) if by != 0 && n % by == 0 => Ok(Some(n / by)),
        Some(_) => Err(bad()),
    };
    match (extent(a)?, extent(b)?) {
        (None, None) => Err(value_error("code -4 in shape cannot infer both extents")),
        (Some(a), None) => Ok((Some(a), divide(whole, a)?)),
        (None, Some(b)) => Ok((divide(whole, b)?, Some(b))),
        (Some(a), Some(b)) if whole.is_none_or(|n| a.checked_mul(b) == Some(n)) => Ok((Some(a), Some(b))),
        _ => Err(bad()),
    }
}

/// The older `target_shape`, where a single 0 is inferred.
fn target(data: &[Option<usize>], shape: &[i64], keep_highest: bool) -> Result<PartialDims, OpError> {
    let mut out: PartialDims = extents("target_shape", shape)?.into_iter().map(Some).collect();
    let start = usize::from(keep_highest);
    if let (true, Some(first), Some(batch)) = (keep_highest, out.first_mut(), data.first()) {
        *first = *batch;
    }
    let zeros: Vec<usize> = (start..out.len()).filter(|i| out[*i] == Some(0)).collect();
    if let [at] = zeros[..] {
        out[at] = Some(1);
        out[at] = left_over(data, &out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::OpTest;

    fn of(data: &[usize], codes: &[i64], reverse: bool) -> Result<Vec<usize>, String> {
        let data: Vec<Option<usize>> = data.iter().map(|d| Some(*d)).collect();
        let out = reshaped(&data, codes, reverse).map_err(|e| e.message.clone())?;
        Ok(out.into_iter().flatten().collect())
    }

    #[test]
    fn codes_mean_what_mxnet_documents() {
        assert_eq!(of(&[2, 3, 4], &[0, -1], false), Ok(vec![2, 12]));
        assert_eq!(of(&[2, 3, 4], &[-2, 1, 1], false), Ok(vec![2, 3, 4, 1, 1]));
        assert_eq!(of(&[2, 3, 4, 5], &[-3, -3], false), Ok(vec![6, 20]));
        assert_eq!(of(&[2, 3, 4], &[0, -4, -1, 3, -2], false), Ok(vec![2, 1, 3, 4]));
        assert_eq!(of(&[10, 5, 4], &[-1, 0], true), Ok(vec![50, 4]));
        assert_eq!(of(&[10, 5, 4], &[-1, 0], false), Ok(vec![40, 5]));
    }

    #[test]
    fn impossible_shapes_are_errors() {
        for codes in [&[-1i64, -1] as &[i64], &[5, -1], &[0, 0, 0], &[-4, 2], &[-4, 5, -1], &[-7], &[-4, 0, -1]] {
            assert!(of(&[2, 3], codes, false).is_err(), "{codes:?}");
        }
        let error = OpTest::new("reshape").attr("shape", "(4, 4)").f32([2, 3], &[0.0; 6]).error();
        assert!(error.message.contains("(2, 3)") && error.message.contains("(4, 4)"), "{}", error.message);
    }

    #[test]
    fn unknown_extents_stay_unknown() {
        let out = reshaped(&[None, Some(3), Some(4)], &[0, -1], false).map(|o| o.to_vec());
        assert_eq!(out.ok(), Some(vec![None, None]));
    }
}
