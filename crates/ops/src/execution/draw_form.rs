//! Forms of random choices among places.

use std::sync::Arc;

/// Choices among places.
#[derive(Clone, Debug, PartialEq)]
pub enum DrawForm {
    /// The rows of input 0, those along its first axis, in random order.
    Shuffle,
    /// Places below a number, in 64 bits.
    Places {
        /// the number
        below: usize,
        /// whether no place comes twice
        distinct: bool,
    },
    /// Places of an input, whose elements are the weights with which they are drawn, in 64 bits.
    Weighted {
        /// number of the input
        weights: usize,
        /// whether no place comes twice
        distinct: bool,
    },
    /// Places along the last axis of input 0, whose elements are their probabilities, equally many of
    /// each row. Output 1, if there is one, has the logarithms of the probabilities.
    Choices,
    /// How many trials have each outcome, in 64 bits. Outcomes are along the last axis.
    Outcomes {
        /// number of trials
        trials: usize,
        /// probabilities of the outcomes; those of input 0 if there are none here
        probabilities: Option<Arc<[f64]>>,
    },
}
