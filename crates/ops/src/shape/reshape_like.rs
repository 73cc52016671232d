//! `reshape_like`: the elements of one array under the shape of another.

use super::{PartialDims, bind_copy, known_product};
use crate::prelude::*;
use std::ops::Range;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "reshape_like",
    aliases: &["_npx_reshape_like"],
    doc: "Reshapes lhs to the shape of rhs; with the bounds given, the axes lhs_begin..lhs_end \
        become the axes rhs_begin..rhs_end of rhs.",
    inputs: Inputs::Fixed(&["lhs", "rhs"]),
    attrs: &[
        AttrDef::new("lhs_begin", AttrKind::OptInt, "None", "First axis of lhs that is replaced."),
        AttrDef::new("lhs_end", AttrKind::OptInt, "None", "Axis of lhs after the last that is replaced."),
        AttrDef::new("rhs_begin", AttrKind::OptInt, "None", "First axis of rhs that is taken."),
        AttrDef::new("rhs_end", AttrKind::OptInt, "None", "Axis of rhs after the last that is taken."),
    ],
    infer_shape,
    infer_dtype: |dtypes| match dtypes.inputs[0] {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    bind: bind_copy,
    rewrites: &Rewrites { is_identity: |_| true, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// The axes between two optional bounds.
fn axes(attrs: &Attrs, begin: &str, end: &str, rank: usize) -> Result<Range<usize>, OpError> {
    let bound = |name: &str, default: usize| match attrs.opt_int(name) {
        None => Ok(default),
        Some(at) => {
            let resolved = if at < 0 { at.checked_add(rank as i64) } else { Some(at) };
            resolved
                .and_then(|a| usize::try_from(a).ok())
                .filter(|a| *a <= rank)
                .ok_or_else(|| value_error(format!("{name}={at} is out of range for an array with {rank} axes")))
        }
    };
    let range = bound(begin, 0)?..bound(end, rank)?;
    if range.is_empty() && (attrs.opt_int(begin).is_some() || attrs.opt_int(end).is_some()) {
        return Err(value_error(format!("{begin}={} is not before {end}={}", range.start, range.end)));
    }
    Ok(range)
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(lhs), Some(rhs)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let replaced = axes(shapes.attrs, "lhs_begin", "lhs_end", lhs.len())?;
    let taken = axes(shapes.attrs, "rhs_begin", "rhs_end", rhs.len())?;
    let mut out: PartialDims = lhs[..replaced.start].iter().copied().collect();
    out.extend_from_slice(&rhs[taken]);
    out.extend_from_slice(&lhs[replaced.end..]);
    if let (Some(have), Some(want)) = (known_product(&lhs), known_product(&out))
        && have != want
    {
        return Err(shape_error(format!(
            "lhs has {have} elements (shape {}) but the new shape {} has {want}",
            shapes.inputs[0],
            PartialShape::from_dims(out)
        )));
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn bounds_hold_an_axis_at_least() {
        let like = |attrs: &[(&str, &str)]| {
            OpTest::new("reshape_like").attrs(attrs).f32([4, 1], &[1.0, 2.0, 3.0, 4.0]).f32([2, 2, 1], &[0.0; 4])
        };
        let y = like(&[("lhs_end", "1"), ("rhs_end", "2")]).run();
        assert_eq!(f32s(&y, [2, 2, 1]), [1.0, 2.0, 3.0, 4.0]);
        for range in [[("lhs_begin", "1"), ("lhs_end", "1")], [("rhs_begin", "-1"), ("rhs_end", "2")]] {
            let error = like(&range).error().message.clone();
            assert!(error.contains("is not before"), "{range:?}: {error}");
        }
    }
}
