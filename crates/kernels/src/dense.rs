//! Fully connected layers.

use crate::element::Float;
use crate::error::check_len;
use crate::gemm_plain::{Gemm, gemm};
use crate::par::Par;

/// `out = x weight^T + bias` for `x` of shape `[rows, inputs]` and `weight` of shape
/// `[outputs, inputs]`.
pub fn fully_connected<T: Float>(
    par: &dyn Par,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    [rows, inputs, outputs]: [usize; 3],
    out: &mut [T],
) {
    check_len("the output", out.len(), rows * outputs);
    let mut product = Gemm { transpose_b: true, ..Gemm::new(rows, outputs, inputs) };
    if let Some(bias) = bias {
        check_len("the bias", bias.len(), outputs);
        if outputs > 0 {
            out.chunks_mut(outputs).for_each(|row| row.copy_from_slice(bias));
        }
        product.beta = 1.0;
    }
    gemm(par, product, x, weight, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    #[test]
    fn rows_meet_every_row_of_the_weight() {
        let (x, weight) = ([1.0f64, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        let mut out = [f64::NAN; 6];
        fully_connected(&Serial, &x, &weight, None, [2, 2, 3], &mut out);
        assert_eq!(out, [1.0, 2.0, 3.0, 3.0, 4.0, 7.0]);
        fully_connected(&Serial, &x, &weight, Some(&[10.0, 20.0, 30.0]), [2, 2, 3], &mut out);
        assert_eq!(out, [11.0, 22.0, 33.0, 13.0, 24.0, 37.0]);
    }
}
