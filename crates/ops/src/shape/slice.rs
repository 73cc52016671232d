//! `slice`: a part of an array, in steps along each axis.

use super::{PartialDims, Strided, bind_strided, strided_form};
use crate::prelude::*;
use mxrt_kernels::strides::contiguous;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "slice",
    aliases: &["_npi_slice", "_npx_slice", "_sparse_slice", "crop"],
    doc: "A part of the array: from begin up to end (not included) in steps, axis by axis. None is \
        the natural bound, negative bounds count from the end, negative steps go backwards.",
    attrs: ATTRS,
    infer_shape,
    bind: |attrs, signature| bind_ranges(&ranges(attrs, &signature.inputs[0].shape)?, signature),
    form: |attrs, signature| ranges_form(&ranges(attrs, &signature.inputs[0].shape)?, signature),
    // A range that takes all rows of a batch takes all of a part of it.
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let Some(data) = signature.inputs.first() else { return false };
            let all = data.shape.first().map(|n| Range { start: 0, step: 1, len: *n });
            rows_of_data(attrs, signature, divided)
                && ranges(attrs, &data.shape).is_ok_and(|ranges| ranges.first().copied() == all)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

pub(crate) const ATTRS: &[AttrDef] = &[
    AttrDef::required("begin", AttrKind::SparseShape, "First index along each axis."),
    AttrDef::required("end", AttrKind::SparseShape, "Index after the last along each axis."),
    AttrDef::new("step", AttrKind::SparseShape, "()", "Step along each axis."),
];

/// Indices along one axis: `start`, `start + step`, … `len` of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub start: usize,
    pub step: isize,
    pub len: usize,
}

impl Range {
    /// The range of `begin:end:step` on an axis with `size` elements, as in Python.
    pub fn new(size: usize, begin: Option<i64>, end: Option<i64>, step: Option<i64>) -> Result<Range, OpError> {
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(value_error("step cannot be 0"));
        }
        // All in 128 bits: no bound that fits an attribute can overflow.
        let (n, s) = (size as i128, i128::from(step));
        let (low, high) = if s > 0 { (0, n) } else { (-1, n - 1) };
        let bound = |given: Option<i64>, default: i128| match given {
            None => default,
            Some(b) => {
                let b = i128::from(b);
                (if b < 0 { b + n } else { b }).clamp(low, high)
            }
        };
        let (first, last) =
            if s > 0 { (bound(begin, 0), bound(end, n)) } else { (bound(begin, n - 1), bound(end, -1)) };
        let len = if s > 0 { (last - first + s - 1).max(0) / s } else { (first - last - s - 1).max(0) / -s };
        Ok(Range { start: first.max(0) as usize, step: step as isize, len: len as usize })
    }
}

/// The ranges of all axes of an array; axes that the attributes do not mention are taken whole.
pub(crate) fn ranges(attrs: &Attrs, shape: &[usize]) -> Result<Vec<Range>, OpError> {
    check_lengths(attrs, shape.len())?;
    let (begin, end, step) = (attrs.sparse_ints("begin"), attrs.sparse_ints("end"), attrs.sparse_ints("step"));
    let at = |list: &[Option<i64>], i: usize| list.get(i).copied().flatten();
    shape.iter().enumerate().map(|(i, n)| Range::new(*n, at(begin, i), at(end, i), at(step, i))).collect()
}

fn check_lengths(attrs: &Attrs, rank: usize) -> Result<(), OpError> {
    let (begin, end, step) = (attrs.sparse_ints("begin"), attrs.sparse_ints("end"), attrs.sparse_ints("step"));
    // A step of None alone is that of a symbol without steps.
    let stepped = step.iter().any(Option::is_some) || step.len() > 1;
    if begin.len() != end.len() || (stepped && step.len() != begin.len()) {
        return Err(value_error(format!(
            "begin, end and step must have one entry for each axis sliced, but have {}, {} and {}",
            begin.len(),
            end.len(),
            step.len()
        )));
    }
    if begin.len() > rank {
        return Err(shape_error(format!("begin names {} axes but the input has {rank}", begin.len())));
    }
    Ok(())
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    check_lengths(shapes.attrs, dims.len())?;
    let sizes: Vec<usize> = dims.iter().map(|d| d.unwrap_or(0)).collect();
    let sliced = shapes.attrs.sparse_ints("begin").len();
    let ranges = ranges(shapes.attrs, &sizes)?;
    let out: PartialDims =
        (0..dims.len()).map(|i| if i < sliced { dims[i].map(|_| ranges[i].len) } else { dims[i] }).collect();
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn view(ranges: &[Range], signature: &Signature<'_>) -> Strided {
    let steps = contiguous(&signature.inputs[0].shape);
    let offset = ranges.iter().zip(&steps).map(|(r, s)| r.start * *s as usize).sum();
    let strides = ranges.iter().zip(&steps).map(|(r, s)| r.step.saturating_mul(*s)).collect();
    Strided { offset, strides, shape: ranges.iter().map(|r| r.len).collect() }
}

/// The part of input 0 that the ranges name.
pub(crate) fn bind_ranges(ranges: &[Range], signature: &Signature<'_>) -> BoundKernel {
    bind_strided(view(ranges, signature), signature)
}

/// The form of [`bind_ranges`].
pub(crate) fn ranges_form(ranges: &[Range], signature: &Signature<'_>) -> MaybeForm {
    strided_form(&view(ranges, signature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OpTest, f32s};

    #[test]
    fn bounds_mean_what_they_mean_in_python() {
        let of = |begin, end, step| Range::new(5, begin, end, step).map(|r| (r.start, r.step, r.len)).ok();
        assert_eq!(of(None, None, None), Some((0, 1, 5)));
        assert_eq!(of(Some(-2), None, None), Some((3, 1, 2)));
        assert_eq!(of(None, None, Some(-1)), Some((4, -1, 5)));
        assert_eq!(of(Some(3), Some(0), Some(-2)), Some((3, -2, 2)));
        assert_eq!(of(Some(1), Some(100), Some(3)), Some((1, 3, 2)));
        assert_eq!(of(Some(4), Some(2), None).map(|r| r.2), Some(0));
        assert_eq!(of(Some(i64::MIN), Some(i64::MAX), Some(i64::MAX)), Some((0, isize::MAX, 1)));
        assert!(Range::new(5, None, None, Some(0)).is_err());
    }

    #[test]
    fn a_slice_may_step_backwards() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let y = OpTest::new("slice")
            .attr("begin", "(None, 2)")
            .attr("end", "(1, None)")
            .attr("step", "(1, -2)")
            .f32([2, 3], &x)
            .run();
        assert_eq!(f32s(&y, [1, 2]), [2.0, 0.0]);
    }
}
