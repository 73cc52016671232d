//! Checks of positions. No kernel runs on positions that were not checked here.

use mxrt_engine::{FailureKind, OpError};

fn refuse(message: String) -> OpError {
    OpError::new(FailureKind::Value, message)
}

/// Checks that numbers are at least 0, rise, and are below `extent`.
pub(super) fn check_rising(numbers: &[i64], extent: usize, what: &str) -> Result<(), OpError> {
    let mut least = 0;
    for (i, number) in numbers.iter().enumerate() {
        if usize::try_from(*number).is_ok_and(|n| n < extent) && *number >= least {
            least = number + 1;
            continue;
        }
        return Err(refuse(match usize::try_from(*number) {
            Ok(n) if n < extent => format!(
                "{what} {number} at position {i} comes after {}: positions must rise, each at most once; sort them, \
                 and add values of equal position",
                least - 1
            ),
            _ => format!("{what} {number} at position {i} is outside of the array, which has {extent}"),
        }));
    }
    Ok(())
}

/// Checks that row pointers begin with 0, don't fall, and end with the number of values.
pub(super) fn check_pointers(pointers: &[i64], rows: usize, stored: usize) -> Result<(), OpError> {
    if pointers.len() != rows.saturating_add(1) {
        return Err(refuse(format!(
            "csr: {} row pointers for {rows} rows; give {rows} + 1: where each row begins, and the number of values",
            pointers.len()
        )));
    }
    if pointers[0] != 0 {
        return Err(refuse(format!("csr: the first row pointer is {}, not 0", pointers[0])));
    }
    if let Some(row) = pointers.windows(2).position(|ends| ends[1] < ends[0]) {
        return Err(refuse(format!(
            "csr: row pointer {} of row {row} is followed by {}: row pointers must not fall",
            pointers[row],
            pointers[row + 1]
        )));
    }
    if usize::try_from(pointers[rows]).ok() != Some(stored) {
        return Err(refuse(format!("csr: the last row pointer is {}, but there are {stored} values", pointers[rows])));
    }
    Ok(())
}
