//! The table of reductions, and how elements are combined by each.

use crate::element::{Element, Float};

/// Calls the macro `$then` with the table.
///
/// A row: name of the reduction; in brackets name and aliases of its operator, if it has one;
/// documentation; the `Fold`s of floating-point numbers and of integers, and how they finish.
#[macro_export]
macro_rules! reductions {
    ($then:ident) => { $then! {
        Sum ["sum" "_sparse_sum" "sum_axis"] "The sum over axes, in the dtype of the input; integers wrap around."
            { float: FloatSum<0>, integers: IntSum<0>, finish: Total }
        Mean ["mean" "_sparse_mean"] "The mean over axes; of integers truncated."
            { float: FloatSum<0>, integers: IntSum<0>, finish: Mean }
        Prod ["prod"] "The product over axes; integers wrap around." { float: FloatProd<false>, integers: IntProd, finish: Total }
        NanSum ["nansum"] "The sum over axes of what is not NaN." { float: FloatSum<1>, integers: IntSum<0>, finish: Total }
        NanProd ["nanprod"] "The product over axes of what is not NaN." { float: FloatProd<true>, integers: IntProd, finish: Total }
        Max ["max" "max_axis"] "The largest element over axes; NaN where there is one."
            { float: Extreme<true>, integers: Extreme<true>, finish: Total }
        Min ["min" "min_axis"] "The smallest element over axes; NaN where there is one."
            { float: Extreme<false>, integers: Extreme<false>, finish: Total }
        L1 "The sum of absolute values." { float: FloatSum<2>, integers: IntSum<1>, finish: Total }
        L2 "The square root of the sum of squares." { float: Squares, integers: Squares, finish: Root }
        SumSquares "The sum of squares." { float: Squares, integers: Squares, finish: Total }
    } };
}

/// The last step of a reduction. It is chosen at run time: reductions that differ in this alone share
/// their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// the total itself
    Total,
    /// divided by the number of elements
    Mean,
    /// square root
    Root,
}

/// A reduction: elements are folded into lanes, lanes into a total, the total becomes the result.
pub(crate) trait Fold<T: Element> {
    /// Accumulator of a block.
    type Lane: Copy + Send + Sync;
    /// Accumulator of all blocks.
    type Total: Copy;
    /// A lane that has seen nothing.
    const INIT: Self::Lane;
    /// A lane that has also seen `v`.
    fn step(lane: Self::Lane, v: T) -> Self::Lane;
    /// Two lanes as one.
    fn join(a: Self::Lane, b: Self::Lane) -> Self::Lane;
    /// A total that has seen nothing.
    fn start() -> Self::Total;
    /// A total that has also seen a lane.
    fn add(total: Self::Total, lane: Self::Lane) -> Self::Total;
    /// The result of `count` elements.
    fn finish(total: Self::Total, count: usize, finish: Finish) -> T;
}

/// Sums of floats: plain (0), without NaN (1), of absolute values (2).
pub(crate) struct FloatSum<const KIND: u8>;

impl<T: Element, const KIND: u8> Fold<T> for FloatSum<KIND> {
    type Lane = T::Acc;
    type Total = f64;
    const INIT: T::Acc = <T::Acc as Element>::ZERO;
    #[inline(always)]
    fn step(lane: T::Acc, v: T) -> T::Acc {
        let v = v.acc();
        match KIND {
            1 if v.nan() => lane,
            2 => lane + v.abs(),
            _ => lane + v,
        }
    }
    #[inline(always)]
    fn join(a: T::Acc, b: T::Acc) -> T::Acc {
        a + b
    }
    fn start() -> f64 {
        0.0
    }
    #[inline(always)]
    fn add(total: f64, lane: T::Acc) -> f64 {
        total + lane.to_f64()
    }
    fn finish(total: f64, count: usize, finish: Finish) -> T {
        T::from_f64(if finish == Finish::Mean { total / count as f64 } else { total })
    }
}

/// Products of floats, in double precision so that the order cannot make them overflow on the way.
pub(crate) struct FloatProd<const SKIP_NAN: bool>;

impl<T: Element, const SKIP_NAN: bool> Fold<T> for FloatProd<SKIP_NAN> {
    type Lane = f64;
    type Total = f64;
    const INIT: f64 = 1.0;
    #[inline(always)]
    fn step(lane: f64, v: T) -> f64 {
        if SKIP_NAN && v.nan() { lane } else { lane * v.to_f64() }
    }
    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a * b
    }
    fn start() -> f64 {
        1.0
    }
    #[inline(always)]
    fn add(total: f64, lane: f64) -> f64 {
        total * lane
    }
    fn finish(total: f64, _: usize, _: Finish) -> T {
        T::from_f64(total)
    }
}

/// Sums of squares in double precision.
pub(crate) struct Squares;

impl<T: Element> Fold<T> for Squares {
    type Lane = f64;
    type Total = f64;
    const INIT: f64 = 0.0;
    #[inline(always)]
    fn step(lane: f64, v: T) -> f64 {
        let v = v.to_f64();
        lane + v * v
    }
    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a + b
    }
    fn start() -> f64 {
        0.0
    }
    #[inline(always)]
    fn add(total: f64, lane: f64) -> f64 {
        total + lane
    }
    fn finish(total: f64, _: usize, finish: Finish) -> T {
        T::from_f64(if finish == Finish::Root { total.sqrt() } else { total })
    }
}

/// Sums of integers: plain (0), of absolute values (1). Means are truncated.
///
/// Wrapping in 64 bits and narrowing at the end is wrapping in the type itself.
pub(crate) struct IntSum<const KIND: u8>;

impl<T: Element, const KIND: u8> Fold<T> for IntSum<KIND> {
    type Lane = i64;
    type Total = i64;
    const INIT: i64 = 0;
    #[inline(always)]
    fn step(lane: i64, v: T) -> i64 {
        let v = v.to_i64();
        lane.wrapping_add(if KIND == 1 { v.wrapping_abs() } else { v })
    }
    #[inline(always)]
    fn join(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
    fn start() -> i64 {
        0
    }
    #[inline(always)]
    fn add(total: i64, lane: i64) -> i64 {
        total.wrapping_add(lane)
    }
    /// MXNet divides in the type of the array, after the sum has wrapped.
    fn finish(total: i64, count: usize, finish: Finish) -> T {
        let total = T::from_i64(total);
        if finish == Finish::Mean { total.over(T::from_i64(count as i64)) } else { total }
    }
}

/// Products of integers.
pub(crate) struct IntProd;

impl<T: Element> Fold<T> for IntProd {
    type Lane = i64;
    type Total = i64;
    const INIT: i64 = 1;
    #[inline(always)]
    fn step(lane: i64, v: T) -> i64 {
        lane.wrapping_mul(v.to_i64())
    }
    #[inline(always)]
    fn join(a: i64, b: i64) -> i64 {
        a.wrapping_mul(b)
    }
    fn start() -> i64 {
        1
    }
    #[inline(always)]
    fn add(total: i64, lane: i64) -> i64 {
        total.wrapping_mul(lane)
    }
    fn finish(total: i64, _: usize, _: Finish) -> T {
        T::from_i64(total)
    }
}

/// A choice between two elements.
pub(crate) trait Choice<T: Element> {
    /// Whether `best` stays where `v` follows.
    fn keeps(best: T, v: T) -> bool;
}

/// The largest or smallest; a NaN wins.
pub(crate) struct Extreme<const MAX: bool>;

impl<T: Element, const MAX: bool> Choice<T> for Extreme<MAX> {
    #[inline(always)]
    fn keeps(best: T, v: T) -> bool {
        (if MAX { best >= v } else { best <= v }) | best.nan()
    }
}

impl<T: Element, const MAX: bool> Fold<T> for Extreme<MAX> {
    type Lane = T;
    type Total = T;
    const INIT: T = if MAX { T::BOTTOM } else { T::TOP };
    #[inline(always)]
    fn step(lane: T, v: T) -> T {
        if Self::keeps(lane, v) { lane } else { v }
    }
    #[inline(always)]
    fn join(a: T, b: T) -> T {
        Self::step(a, b)
    }
    fn start() -> T {
        <Self as Fold<T>>::INIT
    }
    #[inline(always)]
    fn add(total: T, lane: T) -> T {
        Self::step(total, lane)
    }
    fn finish(total: T, _: usize, _: Finish) -> T {
        total
    }
}

/// The largest of what can be compared, at least the lowest finite number: what max pooling
/// computes.
pub(crate) struct Largest;

impl<T: Element> Fold<T> for Largest {
    type Lane = T;
    type Total = T;
    const INIT: T = T::LOWEST;
    #[inline(always)]
    fn step(lane: T, v: T) -> T {
        if v > lane { v } else { lane }
    }
    #[inline(always)]
    fn join(a: T, b: T) -> T {
        if b > a { b } else { a }
    }
    fn start() -> T {
        T::LOWEST
    }
    #[inline(always)]
    fn add(total: T, lane: T) -> T {
        if lane > total { lane } else { total }
    }
    fn finish(total: T, _: usize, _: Finish) -> T {
        total
    }
}
