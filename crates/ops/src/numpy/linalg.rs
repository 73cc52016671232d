//! Factorisations, inverses and norms of the matrices in the last two axes. All compute in double
//! precision.

use super::reduce::{KEEPDIMS, left_shape, marked};
use crate::execution::in_dtypes;
use crate::prelude::*;
use mxrt_engine::{FailureKind, OpError};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::contiguous;
use mxrt_kernels::{KernelError, Par, linalg};
use mxrt_tensor::{DType, Shape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_cholesky",
        doc: "The lower triangular factor of symmetric, positive definite matrices: A = L L^T.",
        inputs: Inputs::Fixed(&["A"]),
        infer_shape: |shapes| {
            square(shapes, 0, "A")?;
            shapes.all_same()
        },
        infer_dtype: wide_floats,
        bind: |_, signature| {
            let n = order(signature);
            Ok(kernel_fn(signature, move |call| {
                let a = floats(call.par, &call.inputs[0])?;
                let mut out = Scratch::<f64>::new(call.par, a.len());
                linalg::cholesky(call.par, n, true, &a, &mut out).map_err(matrix_error)?;
                store_floats(&out, &mut call.outputs[0])
            }))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_svd",
        doc: "Singular values L, descending, and vectors of matrices with no more rows than columns: A = \
              UT diag(L) V. The element of largest magnitude of a row of V is positive.",
        inputs: Inputs::Fixed(&["A"]),
        outputs: Outputs::Count(|_| 3),
        infer_shape: |shapes| {
            let Some(a) = shapes.input(0) else { return Ok(()) };
            let [ref batch @ .., m, n] = a[..] else { return Err(no_matrices("A", &a)) };
            if m > n {
                return Err(shape_error(format!("A has shape {a}, but has to have no more rows than columns")));
            }
            let with = |last: &[usize]| batch.iter().chain(last).copied().collect::<Shape>();
            shapes.set_output(0, with(&[m, m]))?;
            shapes.set_output(1, with(&[m]))?;
            shapes.set_output(2, with(&[m, n]))
        },
        infer_dtype: wide_floats,
        bind: |_, signature| {
            let [.., m, n] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
            Ok(kernel_fn(signature, move |call| {
                let a = floats(call.par, &call.inputs[0])?;
                let [u, l, v] = &*call.outputs else { return Err(wrong_arity()) };
                let mut made = [u, l, v].map(|out| Scratch::<f64>::new(call.par, out.len()));
                let [u, l, v] = &mut made;
                linalg::singular_values(call.par, [m, n], &a, u, l, v).map_err(matrix_error)?;
                made.iter().zip(call.outputs.iter_mut()).try_for_each(|(made, out)| store_floats(made, out))
            }))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_solve",
        doc: "The solution x of A x = B for a vector or matrix B.",
        inputs: Inputs::Fixed(&["A", "B"]),
        infer_shape: |shapes| {
            let (Some(a), Some(b)) = (square(shapes, 0, "A")?, shapes.input(1)) else { return Ok(()) };
            let (n, outer) = (a[a.len() - 1], &a[..a.len() - 2]);
            let vectors = b.len() + 1 == a.len();
            let fits = b.starts_with(outer) && b.get(outer.len()) == Some(&n) && (vectors || b.len() == a.len());
            if !fits {
                return Err(shape_error(format!("A {a} and B {b} do not fit: expected {n} rows in B")));
            }
            shapes.set_output(0, b)
        },
        infer_dtype: float_result,
        bind: |_, signature| {
            let [a, b] = signature.inputs else { return Err(wrong_arity()) };
            let n = order(signature);
            let columns = if b.shape.len() == a.shape.len() { b.shape[b.shape.len() - 1] } else { 1 };
            bind_solution(n, columns, (0..a.shape.len()).collect(), signature)
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_tensorsolve",
        doc: "The solution x of the equation tensordot(a, x, x.ndim) = b, after a_axes of a were moved to \
              its end.",
        inputs: Inputs::Fixed(&["a", "b"]),
        attrs: &[AttrDef::new("a_axes", AttrKind::OptShape, "None", "Axes of a to move to its end.")],
        infer_shape: |shapes| {
            let (Some(a), Some(b)) = (shapes.input(0), shapes.input(1)) else { return Ok(()) };
            let axes = solved_axes(shapes.attrs, a.len())?;
            // The unknowns take the last axes of a: as many as it has more than b, or all but as
            // many as it has less. So NumPy counts.
            let skipped = if a.len() > b.len() { b.len() } else { b.len() - a.len() };
            let out: Shape = axes.iter().skip(skipped).map(|axis| a[*axis]).collect();
            if b.size() != out.size() || b.size().checked_mul(out.size()) != Some(a.size()) {
                return Err(shape_error(format!("a {a} and b {b} make no square system of equations")));
            }
            shapes.set_output(0, out)
        },
        infer_dtype: float_result,
        bind: |attrs, signature| {
            let axes = solved_axes(attrs, signature.inputs[0].shape.len())?;
            bind_solution(signature.inputs[1].shape.size(), 1, axes, signature)
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_tensorinv",
        doc: "The inverse of an array as a map from its axes from ind on to those before.",
        inputs: Inputs::Fixed(&["a"]),
        attrs: &[AttrDef::new("ind", AttrKind::IntFrom(1), "2", "Number of axes of the result of the map.")],
        infer_shape: |shapes| {
            let Some(a) = shapes.input(0) else { return Ok(()) };
            let ind = shapes.attrs.count("ind");
            let Some((front, back)) = a.split_at_checked(ind) else {
                return Err(value_error(format!("ind={ind} exceeds the {} axes of a", a.len())));
            };
            if front.iter().product::<usize>() != back.iter().product::<usize>() {
                return Err(shape_error(format!("a has shape {a}, which is no square matrix when cut at axis {ind}")));
            }
            shapes.set_output(0, back.iter().chain(front).copied().collect::<Shape>())
        },
        infer_dtype: float_result,
        bind: |attrs, signature| {
            let n: usize = signature.inputs[0].shape.iter().take(attrs.count("ind")).product();
            Ok(kernel_fn(signature, move |call| {
                let a = floats(call.par, &call.inputs[0])?;
                let mut out = Scratch::<f64>::new(call.par, a.len());
                linalg::inverse(call.par, n, &a, &mut out).map_err(matrix_error)?;
                store_floats(&out, &mut call.outputs[0])
            }))
        },
        ..OpDef::BASE
    },
    NORM,
];

pub(super) fn matrix_error(error: KernelError) -> OpError {
    OpError::new(FailureKind::Operator, error.to_string())
}

pub(super) fn no_matrices(name: &str, shape: &Shape) -> OpError {
    shape_error(format!("{name} has shape {shape}; expected matrices: 2 axes at least"))
}

/// The shape of an input that must hold square matrices.
pub(super) fn square(shapes: &Shapes<'_>, index: usize, name: &str) -> Result<Option<Shape>, OpError> {
    let Some(shape) = shapes.input(index) else { return Ok(None) };
    match shape[..] {
        [.., rows, columns] if rows == columns => Ok(Some(shape)),
        [.., _, _] => {
            Err(shape_error(format!("{name} has shape {shape}; expected square matrices in the last two axes")))
        }
        _ => Err(no_matrices(name, &shape)),
    }
}

pub(super) fn order(signature: &Signature<'_>) -> usize {
    signature.inputs[0].shape.last().copied().unwrap_or(0)
}

pub(super) fn check_wide(dtype: DType) -> Result<(), OpError> {
    match dtype {
        DType::F32 | DType::F64 => Ok(()),
        other => Err(unsupported_dtype(other, "float32 and float64")),
    }
}

/// All arrays have one of the two types.
fn wide_floats(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    dtypes.inputs[0].map_or(Ok(()), check_wide)?;
    dtypes.all_same()
}

/// float32 where all inputs are, else float64.
pub(super) fn float_result(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(known) = dtypes.inputs.iter().copied().collect::<Option<Vec<DType>>>() else { return Ok(()) };
    if known.contains(&DType::F16) {
        return Err(unsupported_dtype(DType::F16, "float32, float64 and whole numbers"));
    }
    known.iter().try_for_each(|dtype| check_numeric(*dtype))?;
    let dtype = if known.iter().all(|dtype| *dtype == DType::F32) { DType::F32 } else { DType::F64 };
    (0..dtypes.outputs.len()).try_for_each(|i| dtypes.set_output(i, dtype))
}

/// The axes of `tensorsolve`'s first input, those that move at the end.
fn solved_axes(attrs: &Attrs, rank: usize) -> Result<Vec<usize>, OpError> {
    let mut back = Vec::new();
    for axis in attrs.opt_ints("a_axes").unwrap_or(&[]) {
        let axis = resolve_axis(*axis, rank)?;
        if back.contains(&axis) {
            return Err(value_error(format!("a_axes names axis {axis} twice")));
        }
        back.push(axis);
    }
    let front = (0..rank).filter(|axis| !back.contains(axis)).collect::<Vec<_>>();
    Ok(front.into_iter().chain(back.iter().copied()).collect())
}

/// The solution with the axes of the first input in this order, as matrices of order `n`.
fn bind_solution(n: usize, columns: usize, axes: Vec<usize>, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    Ok(kernel_fn(signature, move |call| {
        let (given, b) = (floats(call.par, &call.inputs[0])?, floats(call.par, &call.inputs[1])?);
        let steps = contiguous(&shape);
        let mut a = Scratch::<f64>::new(call.par, given.len());
        let strides: Vec<isize> = axes.iter().map(|axis| steps[*axis]).collect();
        let extents: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
        copy_strided(call.par, &given, 0, &strides, &extents, &mut a).map_err(kernel_error)?;
        let mut inverse = Scratch::<f64>::new(call.par, a.len());
        linalg::inverse(call.par, n, &a, &mut inverse).map_err(matrix_error)?;
        let mut out = Scratch::<f64>::new(call.par, b.len());
        if !out.is_empty() {
            let batch = a.len() / (n * n);
            gemm(call.par, Gemm { batch, ..Gemm::new(n, columns, n) }, &inverse, &b, &mut out);
        }
        store_floats(&out, &mut call.outputs[0])
    }))
}

/// The matrices transposed.
pub(super) fn transposed(par: &dyn Par, a: &[f64], [m, n]: [usize; 2]) -> Scratch<f64> {
    let places = (0..a.len()).map(|i| (i / (m * n), i % (m * n)));
    Scratch::collect(par, a.len(), places.map(|(block, i)| a[block * m * n + i % m * n + i / m]))
}

const NORM: OpDef = OpDef {
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
};

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
    use crate::testing::{OpTest, assert_close, f32s};

    const A: [f32; 4] = [4.0, 2.0, 2.0, 5.0];

    #[test]
    fn factors_multiply_to_the_matrix() {
        let lower = OpTest::new("_npi_cholesky").f32([2, 2], &A).run();
        assert_close(&f32s(&lower, [2, 2]), &[2.0, 0.0, 1.0, 2.0]);
        let out = OpTest::new("_npi_svd").f32([1, 2], &[3.0, -4.0]).run_all();
        assert_close(&f32s(&out[0], [1, 1]), &[-1.0]);
        assert_close(&f32s(&out[1], [1]), &[5.0]);
        assert_close(&f32s(&out[2], [1, 2]), &[-0.6, 0.8]);
        assert!(OpTest::new("_npi_svd").f32([2, 1], &[1.0, 2.0]).error().message.contains("no more rows"));
    }

    #[test]
    fn equations_are_solved() {
        let x = OpTest::new("_npi_solve").f32([2, 2], &A).f32([2], &[8.0, 9.0]).run();
        assert_close(&f32s(&x, [2]), &[1.375, 1.25]);
        let x = OpTest::new("_npi_tensorinv").attr("ind", "1").f32([2, 2, 1], &[2.0, 0.0, 0.0, 4.0]).run();
        assert_close(&f32s(&x, [2, 1, 2]), &[0.5, 0.0, 0.0, 0.25]);
        let x = OpTest::new("_npi_tensorsolve").f32([2, 1, 2], &A).f32([2, 1], &[8.0, 9.0]).run();
        assert_close(&f32s(&x, [2]), &[1.375, 1.25]);
        let error = OpTest::new("_npi_solve").f32([2, 2], &[1.0; 4]).f32([2], &[1.0, 2.0]).error();
        assert!(error.message.contains("singular"), "{}", error.message);
    }

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
