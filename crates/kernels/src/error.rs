//! An error that a kernel can find in values.

/// Bad values, or shapes that do not fit them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// An index points outside of its axis.
    #[error("{} is out of range for axis {axis} with size {size}: expected {low} <= index < {size}", named(*index))]
    IndexOutOfRange {
        /// The index as it was given.
        index: i64,
        /// The axis it indexes.
        axis: usize,
        /// The size of that axis.
        size: usize,
        /// The lowest index allowed: 0, or -size where negative indices count from the end.
        low: i64,
    },
    /// Elements are asked of an axis that has none.
    #[error("cannot take elements along axis {axis}: it has size 0")]
    EmptyAxis {
        /// The axis.
        axis: usize,
    },
    /// Strides or an offset reach outside of the source.
    #[error("a strided copy would read elements {low}..={high} of a source with {len}")]
    OutOfBounds {
        /// The lowest element position reached.
        low: i64,
        /// The highest element position reached.
        high: i64,
        /// How many elements there are.
        len: usize,
    },
    /// A region of interest cannot be pooled.
    #[error("region {region} cannot be pooled: {reason}")]
    Region {
        /// Number of the region.
        region: usize,
        /// The problem.
        reason: &'static str,
    },
    /// A matrix of a batch cannot be factorised.
    #[error("matrix {matrix} {reason}")]
    Matrix {
        /// Number of the matrix in the batch.
        matrix: usize,
        /// The problem.
        reason: &'static str,
    },
    /// Values that contradict each other.
    #[error("{0}")]
    Values(&'static str),
}

/// The index. Conversion makes the lowest number of NaN.
fn named(index: i64) -> String {
    let nan = if index == i64::MIN { " (or NaN)" } else { "" };
    format!("index {index}{nan}")
}

/// Panics with both lengths when a slice does not have the length its shape says.
#[track_caller]
pub(crate) fn check_len(what: &str, len: usize, expected: usize) {
    assert!(len == expected, "{what} has {len} elements, its shape says {expected}");
}
