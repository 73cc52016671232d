//! Comparisons of numbers, whose truth values are bytes of 1 and 0.

use super::functions::vectors2;
use super::{BLOCK, Binary};
use crate::element::{Element, Float};
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};

/// A comparison of two numbers. None but [`NotEqual`](Self::NotEqual) holds for NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Whether both are the same number.
    Equal,
    /// Whether they are not.
    NotEqual,
    /// Whether the left one is greater.
    Greater,
    /// Whether the left one is greater or the same.
    GreaterEqual,
    /// Whether the left one is less.
    Lesser,
    /// Whether the left one is less or the same.
    LesserEqual,
}

impl Comparison {
    /// The comparison that a function of two numbers is, if it is one.
    pub fn of(function: Binary) -> Option<Comparison> {
        match function {
            Binary::Equal => Some(Comparison::Equal),
            Binary::NotEqual => Some(Comparison::NotEqual),
            Binary::Greater => Some(Comparison::Greater),
            Binary::GreaterEqual => Some(Comparison::GreaterEqual),
            Binary::Lesser => Some(Comparison::Lesser),
            Binary::LesserEqual => Some(Comparison::LesserEqual),
            _ => None,
        }
    }

    fn block<T: Element>(self, a: &[T], b: &[T], out: &mut [u8]) {
        match self {
            Comparison::Equal => vectors2(a, b, out, |a, b| u8::from(a == b)),
            Comparison::NotEqual => vectors2(a, b, out, |a, b| u8::from(a != b)),
            Comparison::Greater => vectors2(a, b, out, |a, b| u8::from(a > b)),
            Comparison::GreaterEqual => vectors2(a, b, out, |a, b| u8::from(a >= b)),
            Comparison::Lesser => vectors2(b, a, out, |b, a| u8::from(b > a)),
            Comparison::LesserEqual => vectors2(b, a, out, |b, a| u8::from(b >= a)),
        }
    }
}

/// A question about one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Whether it is 0.
    Zero,
    /// Whether it is NaN.
    Nan,
    /// Whether it is infinite.
    Infinite,
    /// Whether it is positive infinity.
    PositiveInfinity,
    /// Whether it is negative infinity.
    NegativeInfinity,
    /// Whether it is neither infinite nor NaN.
    Finite,
}

/// `out[i]` is the answer for `x[i]`.
pub fn ask<T: Element>(par: &dyn Par, question: Question, x: &[T], out: &mut [u8]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        let top = <T::Acc as Element>::TOP;
        match question {
            Question::Zero => vectors2(x, x, out, |x, _| u8::from(x == T::ZERO)),
            Question::Nan => vectors2(x, x, out, |x, _| u8::from(x.nan())),
            Question::Infinite => vectors2(x, x, out, |x, _| u8::from(x.acc().abs() == top)),
            Question::PositiveInfinity => vectors2(x, x, out, |x, _| u8::from(x.acc() == top)),
            Question::NegativeInfinity => vectors2(x, x, out, |x, _| u8::from(x.acc() == -top)),
            Question::Finite => vectors2(x, x, out, |x, _| u8::from(x.acc().abs() < top)),
        }
    });
}

/// `out[i]` is whether `a[i]` and `b[i]` compare so.
pub fn compare<T: Element>(par: &dyn Par, comparison: Comparison, a: &[T], b: &[T], out: &mut [u8]) {
    check_len("the first input", a.len(), out.len());
    check_len("the second input", b.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let (start, n) = (i * chunk, out.len());
        comparison.block(&a[start..][..n], &b[start..][..n], out);
    });
}

/// `out[i]` is whether `x[i]` and the number compare so.
pub fn compare_number<T: Element>(par: &dyn Par, comparison: Comparison, x: &[T], number: T, out: &mut [u8]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let numbers = [number; BLOCK];
        for (out, x) in out.chunks_mut(BLOCK).zip(x[i * chunk..].chunks(BLOCK)) {
            comparison.block(&x[..out.len()], &numbers[..out.len()], out);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::random;
    use crate::vectorize::Width;

    #[test]
    fn comparisons_hold_as_the_operators_say_at_every_vector_width() {
        let (mut a, mut b) = (random(1003, 1), random(1003, 2));
        a.iter_mut().zip(&mut b).step_by(3).for_each(|(a, b)| *b = *a);
        (a[1], b[2], a[5], b[5]) = (f32::NAN, f32::NAN, 0.0, -0.0);
        type Holds = fn(&f32, &f32) -> bool;
        let operators: [(Binary, Holds); 6] = [
            (Binary::Equal, |a, b| a == b),
            (Binary::NotEqual, |a, b| a != b),
            (Binary::Greater, |a, b| a > b),
            (Binary::GreaterEqual, |a, b| a >= b),
            (Binary::Lesser, |a, b| a < b),
            (Binary::LesserEqual, |a, b| a <= b),
        ];
        for (function, holds) in operators {
            let comparison = Comparison::of(function).unwrap();
            for width in Width::all() {
                let (mut two, mut one) = (vec![7; a.len()], vec![7; a.len()]);
                width.limit(|| {
                    compare(&Serial, comparison, &a, &b, &mut two);
                    compare_number(&Serial, comparison, &a, b[0], &mut one);
                });
                let expected: Vec<u8> = a.iter().zip(&b).map(|(a, b)| holds(a, b).into()).collect();
                assert_eq!(two, expected, "{function:?} on {width:?}");
                let expected: Vec<u8> = a.iter().map(|a| holds(a, &b[0]).into()).collect();
                assert_eq!(one, expected, "{function:?} with a number on {width:?}");
            }
        }
        assert_eq!(Comparison::of(Binary::Add), None);
    }
}
