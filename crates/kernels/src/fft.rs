//! Discrete Fourier transforms of rows, computed in float64.
//!
//! A length that is a power of two is transformed by the method of Cooley and Tukey ("An algorithm
//! for the machine calculation of complex Fourier series", 1965). Any other is a convolution with a
//! chirp (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
//! 1970), which transforms of a power of two compute.

use crate::element::Element;
use crate::error::check_len;
use crate::par::{Par, chunk_by_work, par_chunks_mut};
use crate::scratch::Scratch;
use std::f64::consts::PI;

/// Real and imaginary part.
type Complex = [f64; 2];

/// The factors of transforms of one length.
pub struct Fft {
    len: usize,
    /// `exp(-2 pi i k / m)` for `k` below `m / 2`, where `m` is the power of two that is computed.
    roots: Vec<Complex>,
    chirp: Option<Chirp>,
}

struct Chirp {
    /// `exp(-pi i k^2 / len)`.
    factors: Vec<Complex>,
    /// The transform of their conjugates, laid around element 0.
    spectrum: Vec<Complex>,
}

impl Fft {
    /// The factors for rows of `len` numbers.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn new(len: usize) -> Fft {
        assert!(len > 0, "a transform of no numbers");
        let size = if len.is_power_of_two() { len } else { (2 * len - 1).next_power_of_two() };
        let roots: Vec<Complex> = (0..size / 2).map(|k| turn(-2.0 * PI * k as f64 / size as f64)).collect();
        let chirp = (size != len).then(|| Chirp::new(len, size, &roots));
        Fft { len, roots, chirp }
    }

    /// Numbers that a row needs while it is transformed.
    fn size(&self) -> usize {
        self.chirp.as_ref().map_or(self.len, |chirp| chirp.spectrum.len())
    }

    /// Transforms the first `len` numbers of `row`, which has `size` of them; the rest is scratch.
    fn transform(&self, row: &mut [Complex]) {
        let Some(chirp) = &self.chirp else { return power_of_two(row, &self.roots) };
        let (begin, rest) = row.split_at_mut(self.len);
        begin.iter_mut().zip(&chirp.factors).for_each(|(x, factor)| *x = times(*x, *factor));
        rest.fill([0.0; 2]);
        power_of_two(row, &self.roots);
        // The inverse transform is the transform of conjugates.
        row.iter_mut().zip(&chirp.spectrum).for_each(|(x, factor)| *x = conjugate(times(*x, *factor)));
        power_of_two(row, &self.roots);
        let scale = 1.0 / row.len() as f64;
        for (x, factor) in row.iter_mut().zip(&chirp.factors) {
            let [re, im] = times(conjugate(*x), *factor);
            *x = [re * scale, im * scale];
        }
    }

    /// Transforms rows of real numbers: `out[2 k]` and `out[2 k + 1]` are the real and the imaginary
    /// part of `sum_j x[j] exp(-2 pi i j k / len)`.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn forward<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        check_len("out", out.len(), 2 * x.len());
        self.rows(par, 2 * self.len, out, |row, work, out| {
            let x = &x[row * self.len..][..self.len];
            work.iter_mut().zip(x).for_each(|(work, x)| *work = [x.to_f64(), 0.0]);
            self.transform(work);
            for (out, x) in out.chunks_exact_mut(2).zip(&*work) {
                out.copy_from_slice(&x.map(T::from_f64));
            }
        });
    }

    /// The real part of the inverse transforms of rows of real and imaginary parts, times `len`:
    /// `out[j] = Re sum_k x[k] exp(2 pi i j k / len)`.
    ///
    /// # Panics
    /// If the lengths contradict each other.
    pub fn inverse<T: Element>(&self, par: &dyn Par, x: &[T], out: &mut [T]) {
        check_len("x", x.len(), 2 * out.len());
        self.rows(par, self.len, out, |row, work, out| {
            let x = &x[2 * row * self.len..][..2 * self.len];
            for (work, x) in work.iter_mut().zip(x.chunks_exact(2)) {
                *work = [x[0].to_f64(), -x[1].to_f64()];
            }
            self.transform(work);
            out.iter_mut().zip(&*work).for_each(|(out, x)| *out = T::from_f64(x[0]));
        });
    }

    /// Calls `each` with the number of a row, its scratch and its `width` outputs.
    fn rows<T: Element>(
        &self,
        par: &dyn Par,
        width: usize,
        out: &mut [T],
        each: impl Fn(usize, &mut [Complex], &mut [T]) + Sync,
    ) {
        let band = chunk_by_work(8 * self.size());
        par_chunks_mut(par, out, band * width, |chunk, out| {
            let mut work = Scratch::<Complex>::new(par, self.size());
            for (i, out) in out.chunks_exact_mut(width).enumerate() {
                each(chunk * band + i, &mut work, out);
            }
        });
    }
}

impl Chirp {
    fn new(len: usize, size: usize, roots: &[Complex]) -> Chirp {
        // The square is reduced before it becomes an angle, which would lose its last digits.
        let angle = |k: usize| (k as u128 * k as u128 % (2 * len as u128)) as f64 * PI / len as f64;
        let factors: Vec<Complex> = (0..len).map(|k| turn(-angle(k))).collect();
        let mut spectrum = vec![[0.0; 2]; size];
        for (k, factor) in factors.iter().enumerate() {
            spectrum[k] = conjugate(*factor);
            spectrum[(size - k) % size] = conjugate(*factor);
        }
        power_of_two(&mut spectrum, roots);
        Chirp { factors, spectrum }
    }
}

/// Transforms as many numbers as there are roots, twice over: a power of two.
fn power_of_two(row: &mut [Complex], roots: &[Complex]) {
    let len = row.len();
    if len < 2 {
        return;
    }
    let shift = usize::BITS - len.trailing_zeros();
    for i in 0..len {
        let j = i.reverse_bits() >> shift;
        if i < j {
            row.swap(i, j);
        }
    }
    let mut half = 1;
    while half < len {
        let stride = len / (2 * half);
        for block in row.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), root) in low.iter_mut().zip(high).zip(roots.iter().step_by(stride)) {
                let ([a, b], [c, d]) = (*low, times(*high, *root));
                (*low, *high) = ([a + c, b + d], [a - c, b - d]);
            }
        }
        half *= 2;
    }
}

fn turn(angle: f64) -> Complex {
    [angle.cos(), angle.sin()]
}

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn conjugate([a, b]: Complex) -> Complex {
    [a, -b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    #[test]
    fn transforms_of_every_length_are_the_sums_that_define_them() {
        for len in (1..40).chain([64, 97, 100]) {
            let x: Vec<f64> = (0..2 * len).map(|i| ((i * 7919) % 31) as f64 / 10.0 - 1.5).collect();
            let mut y = vec![0.0; 4 * len];
            let fft = Fft::new(len);
            fft.forward(&Serial, &x, &mut y);
            for (x, y) in x.chunks(len).zip(y.chunks(2 * len)) {
                for k in 0..len {
                    let mut sum = [0.0; 2];
                    for (j, x) in x.iter().enumerate() {
                        let [c, s] = turn(-2.0 * PI * (j * k % len) as f64 / len as f64);
                        sum = [sum[0] + x * c, sum[1] + x * s];
                    }
                    assert!((sum[0] - y[2 * k]).abs() < 1e-11 && (sum[1] - y[2 * k + 1]).abs() < 1e-11, "{len}");
                }
            }
            let mut back = vec![0.0; 2 * len];
            fft.inverse(&Serial, &y, &mut back);
            let off = x.iter().zip(&back).map(|(x, y)| (x * len as f64 - y).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{len}: {off}");
        }
    }
}
