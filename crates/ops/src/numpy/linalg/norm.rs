//! `_npi_norm`: norms of vectors and matrices.

use super::{matrix_error, transposed};
use crate::execution::in_dtypes;
use crate::numpy::reduce::{KEEPDIMS, left_shape, marked};
use crate::prelude::*;
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_kernels::{Par, linalg};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_norm",
    doc: "Norms of vectors along an axis, or of matrices in two axes.\n\nflag says which: -2 the length of \
          all elements, -1 that of ord, 0 the spectral one for matrices, 1 Frobenius', 2 the nuclear one, 3 \
          the largest, 4 the least absolute value.",
    attrs: &[
        AttrDef::new("ord", AttrKind::Float, "2", "Order of the norm.").wide().unlisted(),
        AttrDef::new("axis", AttrKind::OptShape, "None", "One axis of vectors or two of matrices.").unlisted(),
        KEEPDIMS.unlisted(),
        AttrDef::new("flag", AttrKind::Int, "-1", "The kind of norm.").unlisted(),
    ],
    outputs: Outputs::OneNamed("output0"),
    hidden_outputs: |_| 3,
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let axes = norm_axes(shapes.attrs, dims.len())?;
        norm_kind(shapes.attrs, axes.len())?;
        let mut reduced: Vec<bool> = vec![false; dims.len()];
        axes.iter().for_each(|axis| reduced[*axis] = true);
        shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
    },
    bind: bind_norm,
    ..OpDef::BASE
}];

/// Norms of vectors and matrices.
#[derive(Clone, Copy)]
enum Norm {
    /// length of all elements
    Length,
    /// norm of this order, of a vector
    Order(f64),
    Largest,
    Least,
    /// largest or smallest sum of absolute values of columns or rows, of a matrix
    Sums {
        columns: bool,
        largest: bool,
    },
    /// largest or smallest singular value, of a matrix
    Spectral {
        largest: bool,
    },
    Nuclear,
}

fn norm_axes(attrs: &Attrs, rank: usize) -> Result<Vec<usize>, OpError> {
    match attrs.opt_ints("axis") {
        None if attrs.int("flag") == -2 => Ok((0..rank).collect()),
        None => Ok((rank.saturating_sub(2)..rank).collect()),
        Some(axes) => {
            marked(Some(axes), rank)?;
            axes.iter().map(|axis| resolve_axis(*axis, rank)).collect()
        }
    }
}

fn norm_kind(attrs: &Attrs, axes: usize) -> Result<Norm, OpError> {
    let ord = attrs.float("ord");
    let matrices = axes == 2;
    let kind = match attrs.int("flag") {
        -2 | 1 => Norm::Length,
        2 if matrices => Norm::Nuclear,
        3 if matrices => Norm::Sums { columns: false, largest: true },
        4 if matrices => Norm::Sums { columns: false, largest: false },
        3 => Norm::Largest,
        4 => Norm::Least,
        _ if !matrices => match ord {
            ord if ord == f64::INFINITY => Norm::Largest,
            ord if ord == f64::NEG_INFINITY => Norm::Least,
            2.0 => Norm::Length,
            ord => Norm::Order(ord),
        },
        _ if ord == 1.0 || ord == -1.0 => Norm::Sums { columns: true, largest: ord > 0.0 },
        _ if ord == 2.0 || ord == -2.0 => Norm::Spectral { largest: ord > 0.0 },
        _ => return Err(value_error(format!("invalid norm order {ord} for matrices"))),
    };
    if axes > 2 && attrs.int("flag") != -2 {
        return Err(value_error("improper number of dimensions to norm: expected one axis or two"));
    }
    Ok(kind)
}

fn bind_norm(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let axes = norm_axes(attrs, shape.len())?;
    let kind = norm_kind(attrs, axes.len())?;
    if signature.inputs[0].dtype == DType::Bool {
        // It is true unless it is 0, as in MXNet.
        return in_dtypes(signature, |_| DType::F64, |_| DType::F64, |signature| bind_norm(attrs, signature));
    }
    check_numeric(signature.inputs[0].dtype)?;
    let order: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).chain(axes.iter().copied()).collect();
    let matrix: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
    Ok(kernel_fn(signature, move |call| {
        let given = floats(call.par, &call.inputs[0])?;
        let steps = contiguous(&shape);
        let mut x = Scratch::<f64>::new(call.par, given.len());
        let strides: Vec<isize> = order.iter().map(|axis| steps[*axis]).collect();
        let extents: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        copy_strided(call.par, &given, 0, &strides, &extents, &mut x).map_err(kernel_error)?;
        let size: usize = matrix.iter().product();
        let mut out = Scratch::<f64>::new(call.par, call.outputs[0].len());
        for (i, out) in out.iter_mut().enumerate() {
            *out = norm_of(call.par, kind, &x[i * size..(i + 1) * size], &matrix)?;
        }
        store_floats(&out, &mut call.outputs[0])
    }))
}

/// The sum, which is +0 of no numbers: that of the standard library is -0.
fn total(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, v| sum + v)
}

fn extreme(values: impl Iterator<Item = f64>, largest: bool) -> f64 {
    values.reduce(if largest { f64::max } else { f64::min }).unwrap_or(0.0)
}

fn norm_of(par: &dyn Par, kind: Norm, x: &[f64], shape: &[usize]) -> Result<f64, OpError> {
    let magnitudes = || x.iter().map(|v| v.abs());
    Ok(match (kind, shape) {
        (Norm::Length, _) => total(x.iter().map(|v| v * v)).sqrt(),
        (Norm::Order(0.0), _) => magnitudes().filter(|v| *v != 0.0).count() as f64,
        (Norm::Order(ord), _) => total(magnitudes().map(|v| v.powf(ord))).powf(1.0 / ord),
        (Norm::Largest, _) => extreme(magnitudes(), true),
        (Norm::Least, _) => extreme(magnitudes(), false),
        (Norm::Sums { columns: true, largest }, [m, n]) => {
            extreme((0..*n).map(|j| total((0..*m).map(|i| x[i * n + j].abs()))), largest)
        }
        (Norm::Sums { largest, .. }, [_, n]) => {
            extreme(x.chunks((*n).max(1)).map(|row| total(row.iter().map(|v| v.abs()))), largest)
        }
        (Norm::Spectral { .. } | Norm::Nuclear, [m, n]) if m * n > 0 => {
            let turned = if m <= n { None } else { Some(transposed(par, x, [*m, *n])) };
            let (wide, size) = (turned.as_deref().unwrap_or(x), [*m.min(n), *m.max(n)]);
            let [mut u, mut l, mut v] = [size[0] * size[0], size[0], x.len()].map(|n| Scratch::<f64>::new(par, n));
            linalg::singular_values(par, size, wide, &mut u, &mut l, &mut v).map_err(matrix_error)?;
            match kind {
                Norm::Spectral { largest } => extreme(l.iter().copied(), largest),
                _ => total(l.iter().copied()),
            }
        }
        _ => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close};

    #[test]
    fn norms_are_of_vectors_or_matrices() {
        let of = |ord: &str, flag: &str, axis: &str| {
            let test = OpTest::new("_npi_norm").attr("ord", ord).attr("flag", flag).attr("axis", axis);
            test.f32([2, 2], &[3.0, 0.0, 0.0, -4.0]).run().values::<f32>()
        };
        assert_close(&of("2", "-2", "None"), &[5.0]);
        assert_close(&of("2", "-1", "(0, 1)"), &[4.0]);
        assert_close(&of("-2", "-1", "(0, 1)"), &[3.0]);
        assert_close(&of("2", "2", "(0, 1)"), &[7.0]);
        assert_close(&of("1", "-1", "(1,)"), &[3.0, 4.0]);
        let truths = || OpTest::new("_npi_norm").bools(&[2, 2], &[true, true, false, false]);
        assert_eq!(truths().attr("flag", "-2").run().values::<u8>(), [1]);
        assert_eq!(truths().attr("flag", "-1").attr("ord", "1").attr("axis", "(1,)").run().values::<u8>(), [1, 0]);
        let none = OpTest::new("_npi_norm").attr("flag", "-2").floats(&[0], &[]).run().values::<f32>();
        assert_eq!(none[0].to_bits(), 0);
        let error = OpTest::new("_npi_norm").attr("ord", "3").f32([2, 2], &[0.0; 4]).error();
        assert!(error.message.contains("norm order 3"), "{}", error.message);
    }
}
