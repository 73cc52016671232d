//! Sliding windows over one, two or three spatial axes.

/// Up to three spatial axes as exactly three: missing leading ones get `fill`.
///
/// # Panics
/// If there are more than three.
pub fn three(values: &[usize], fill: usize) -> [usize; 3] {
    assert!(values.len() <= 3, "{values:?}: at most three spatial axes");
    let mut all = [fill; 3];
    all[3 - values.len()..].copy_from_slice(values);
    all
}

/// The outputs whose window position `tap` (already dilated) lies inside of an axis with `size`
/// elements.
pub(crate) fn inside(tap: usize, stride: usize, pad: usize, size: usize, outputs: usize) -> std::ops::Range<usize> {
    // out * stride + tap - pad must be in 0..size.
    let first = pad.saturating_sub(tap).div_ceil(stride);
    let end = (size + pad).saturating_sub(tap).div_ceil(stride).min(outputs);
    first.min(end)..end
}

/// How many windows fit on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// Windows that lie inside of the padded axis.
    Valid,
    /// Counts a window that extends past the end, too.
    Full,
    /// One for every stride, whatever the window.
    Same,
}

/// The number of windows on an axis; `None` where the window is larger than the padded axis or the
/// stride is 0.
pub fn pooled_size(size: usize, kernel: usize, stride: usize, pad: usize, convention: Convention) -> Option<usize> {
    let padded = size + 2 * pad;
    let room = padded.checked_sub(kernel)?;
    if stride == 0 {
        return None;
    }
    Some(match convention {
        Convention::Valid => room / stride + 1,
        Convention::Full => room.div_ceil(stride) + 1,
        Convention::Same => padded.div_ceil(stride),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_tap_is_where_it_reads_inside() {
        for (stride, pad, size, outputs) in [(1, 0, 5, 5), (2, 3, 7, 9), (3, 1, 4, 4), (1, 9, 2, 20)] {
            for tap in 0..12 {
                let expected: Vec<usize> = (0..outputs)
                    .filter(|o| {
                        let at = (o * stride + tap) as isize - pad as isize;
                        (0..size as isize).contains(&at)
                    })
                    .collect();
                assert_eq!(inside(tap, stride, pad, size, outputs).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn conventions_differ_at_the_end() {
        assert_eq!(pooled_size(6, 3, 2, 0, Convention::Valid), Some(2));
        assert_eq!(pooled_size(6, 3, 2, 0, Convention::Full), Some(3));
        assert_eq!(pooled_size(7, 3, 2, 0, Convention::Same), Some(4));
        assert_eq!(pooled_size(2, 3, 1, 0, Convention::Valid), None);
    }
}
