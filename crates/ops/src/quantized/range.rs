//! Ranges of quantized arrays.

use crate::prelude::*;
use mxrt_tensor::{TensorMut, TensorRef};

/// The least and the largest number that an array of integers stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub min: f32,
    pub max: f32,
}

impl Range {
    /// A range with these ends; an error names it where it is none.
    pub fn new(name: &str, min: f32, max: f32) -> Result<Range, OpError> {
        let wrong = |what: &str| {
            Err(value_error(format!(
                "the range of {name} is min={min}, max={max}: {what}; give the finite range that the array was \
                 quantized with"
            )))
        };
        match (min.is_finite() && max.is_finite(), min <= max) {
            (false, _) => wrong("both ends must be finite numbers"),
            (_, false) => wrong("the least is larger than the largest"),
            _ => Ok(Range { min, max }),
        }
    }

    /// The range in the inputs `at` and `at + 1`.
    pub fn read(name: &str, inputs: &[TensorRef<'_>], at: usize) -> Result<Range, OpError> {
        let end = |i: usize| -> Result<f32, OpError> {
            let array = inputs.get(i).ok_or_else(wrong_arity)?;
            let missing = || value_error(format!("the range of {name} is empty: it needs one number"));
            elements::<f32>(array)?.first().copied().ok_or_else(missing)
        };
        Range::new(name, end(at)?, end(at + 1)?)
    }

    /// The range of the elements; NaN does not count, infinities are errors.
    pub fn of(name: &str, numbers: &[f32]) -> Result<Range, OpError> {
        let first = Range { min: f32::INFINITY, max: f32::NEG_INFINITY };
        let found = numbers.iter().fold(first, |r, v| Range { min: v.min(r.min), max: v.max(r.max) });
        if found.min == f32::INFINITY && found.max == f32::NEG_INFINITY {
            // No number at all.
            return Ok(Range { min: 0.0, max: 0.0 });
        }
        if found.min.is_infinite() || found.max.is_infinite() {
            return Err(infinity_error(name));
        }
        Ok(found)
    }

    /// The larger magnitude.
    pub fn largest(self) -> f32 {
        self.min.abs().max(self.max.abs())
    }

    /// The range around zero that holds this one.
    pub fn centred(self) -> Range {
        Range { min: -self.largest(), max: self.largest() }
    }
}

/// The error of an array with these ends as its range, which are none.
pub fn range_error(name: &str, min: f32, max: f32) -> OpError {
    let error = Range::new(name, min, max).err();
    error.unwrap_or_else(|| value_error(format!("the range of {name} is none: min={min}, max={max}")))
}

/// The error of an array whose range is not finite.
pub fn infinity_error(name: &str) -> OpError {
    value_error(format!(
        "{name} holds an infinity, so there is no range to quantize it with; give min_calib_range and \
         max_calib_range"
    ))
}

/// The calibrated range of the attributes, if there is one.
pub(crate) fn calibration(attrs: &Attrs) -> Result<Option<Range>, OpError> {
    match (attrs.opt_float("min_calib_range"), attrs.opt_float("max_calib_range")) {
        (None, None) => Ok(None),
        (Some(min), Some(max)) => Range::new("the calibration", min as f32, max as f32).map(Some),
        (Some(_), None) => Err(value_error("min_calib_range is given, but max_calib_range is missing")),
        (None, Some(_)) => Err(value_error("max_calib_range is given, but min_calib_range is missing")),
    }
}

/// Writes a range to outputs 1 and 2.
pub(crate) fn store_range(range: Range, outputs: &mut [TensorMut<'_>]) -> Result<(), OpError> {
    let [_, min, max] = outputs else { return Err(wrong_arity()) };
    for (out, value) in [(min, range.min), (max, range.max)] {
        elements_mut::<f32>(out)?.fill(value);
    }
    Ok(())
}
