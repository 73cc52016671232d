//! The common part of the tables of functions: loops over blocks, estimates of time.

use super::BLOCK;
use crate::element::Element;
use crate::vectorize::{Loop, vectorize};

/// The time of a function for each element on one core, besides reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionCost {
    /// Nothing, for every element type.
    Streaming,
    /// Picoseconds in single precision, by vectors of 512 bits; shorter vectors take longer. Zero
    /// if reading and writing take all of the time.
    Vectors(u64),
    /// Picoseconds in single precision, number by number.
    Calls(u64),
    /// Picoseconds for every element type.
    EveryType(u64),
    /// Picoseconds for integers, nothing for floating point.
    Integers(u64),
}

impl FunctionCost {
    /// Most functions of the system's mathematical library.
    pub(crate) const CALL: FunctionCost = FunctionCost::Calls(3_000);
    /// The cost of slow functions of the library.
    pub(crate) const SLOW_CALL: FunctionCost = FunctionCost::Calls(9_000);
}

struct Map1<'a, T, F> {
    x: &'a [T],
    out: &'a mut [T],
    f: F,
}

impl<T: Copy, F: Fn(T) -> T> Loop for Map1<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.x) {
            *out = (self.f)(x);
        }
    }
}

struct Map2<'a, T, O, F> {
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [O],
    f: F,
}

impl<T: Copy, O, F: Fn(T, T) -> O> Loop for Map2<'_, T, O, F> {
    #[inline(always)]
    fn run(self) {
        for ((out, &a), &b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            *out = (self.f)(a, b);
        }
    }
}

/// `out[i] = f(x[i])`, compiled for every vector width.
pub(crate) fn vectors<T: Copy>(x: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    vectorize(Map1 { x, out, f });
}

/// `out[i] = f(x[i])`, compiled once: for functions that are a call anyway.
pub(crate) fn each<T: Copy>(x: &[T], out: &mut [T], f: impl Fn(T) -> T) {
    Map1 { x, out, f }.run();
}

/// `out[i] = f(a[i], b[i])`, compiled for every vector width.
pub(crate) fn vectors2<T: Copy, O>(a: &[T], b: &[T], out: &mut [O], f: impl Fn(T, T) -> O) {
    vectorize(Map2 { a, b, out, f });
}

/// `out[i] = f(a[i], b[i])`, compiled once: for functions that are a call anyway.
pub(crate) fn each2<T: Copy>(a: &[T], b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    Map2 { a, b, out, f }.run();
}

/// `f` of a block in double precision, rounded to the type: so that a function is not compiled for
/// every type.
pub(crate) fn in_double<T: Element>(x: &[T], out: &mut [T], f: &dyn Fn(&[f64], &mut [f64])) {
    let (mut wide, mut result) = ([0f64; BLOCK], [0f64; BLOCK]);
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let (wide, result) = (&mut wide[..x.len()], &mut result[..x.len()]);
        wide.iter_mut().zip(x).for_each(|(wide, x)| *wide = x.to_f64());
        f(wide, result);
        out.iter_mut().zip(result).for_each(|(out, result)| *out = T::from_f64(*result));
    }
}

/// `f` of two blocks in single precision, rounded to the type.
#[allow(clippy::type_complexity, reason = "a function of three blocks")]
pub(crate) fn in_single2<T: Element>(a: &[T], b: &[T], out: &mut [T], f: &dyn Fn(&[f32], &[f32], &mut [f32])) {
    let (mut wide_a, mut wide_b, mut result) = ([0f32; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
    for ((a, b), out) in a.chunks(BLOCK).zip(b.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)) {
        let n = out.len();
        wide_a.iter_mut().zip(a).for_each(|(wide, a)| *wide = a.to_f64() as f32);
        wide_b.iter_mut().zip(b).for_each(|(wide, b)| *wide = b.to_f64() as f32);
        f(&wide_a[..n], &wide_b[..n], &mut result[..n]);
        out.iter_mut().zip(&result).for_each(|(out, result)| *out = T::from_f64(f64::from(*result)));
    }
}

/// 1 or 0.
#[inline(always)]
pub(crate) fn truth<T: Element>(condition: bool) -> T {
    if condition { T::ONE } else { T::ZERO }
}

/// The value limited to `low..=high`; NaN stays NaN.
#[inline(always)]
pub(crate) fn clip<T: PartialOrd>(x: T, low: T, high: T) -> T {
    if x > high {
        high
    } else if x < low {
        low
    } else {
        x
    }
}
