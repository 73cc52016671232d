//! `dot`: products over the last axis and the first.

use crate::prelude::*;
use crate::shape::PartialDims;
use mxrt_kernels::gemm::{Epilogue, Matrix, Sgemm};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::par::Par;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "dot",
    aliases: &["_sparse_dot"],
    doc: "The sum of products over the last axis of lhs and the first of rhs (over the other \
        ends where transposed).",
    inputs: Inputs::Fixed(&["lhs", "rhs"]),
    attrs: ATTRS,
    infer_shape: infer_dot,
    infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
    bind: bind_dot,
    form: |attrs, signature| product_form(dot(attrs, signature)?),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            let is_matrix = signature.inputs.first().is_some_and(|t| t.shape.len() > 1);
            *divided == [true, false] && is_matrix && !attrs.bool("transpose_a")
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

pub(super) const ATTRS: &[AttrDef] = &[
    AttrDef::new("transpose_a", AttrKind::Bool, "False", "Transpose the first operand."),
    AttrDef::new("transpose_b", AttrKind::Bool, "False", "Transpose the second operand."),
    AttrDef::new(
        "forward_stype",
        AttrKind::OptEnum(&["csr", "default", "row_sparse"]),
        "None",
        "Storage of the result.",
    ),
];

pub(super) fn mismatch(shapes: &Shapes<'_>) -> OpError {
    let flag = |name: &str| if shapes.attrs.bool(name) { " transposed" } else { "" };
    shape_error(format!(
        "lhs {}{} and rhs {}{} cannot be multiplied: the axes that are summed have different sizes",
        shapes.inputs[0],
        flag("transpose_a"),
        shapes.inputs[1],
        flag("transpose_b")
    ))
}

/// Cuts the axes of one operand of `dot` into those summed over and the others. A vector is summed
/// whole.
fn cut<T: Copy>(dims: &[T], sum_first: bool) -> Option<(T, Vec<T>)> {
    let mut kept = dims.to_vec();
    if sum_first && !kept.is_empty() { Some((kept.remove(0), kept)) } else { kept.pop().map(|summed| (summed, kept)) }
}

fn infer_dot(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(a), Some(b)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let transposed = shapes.attrs.bool("transpose_a") || shapes.attrs.bool("transpose_b");
    if transposed && a.len() == 1 && b.len() == 1 {
        return Err(shape_error("two vectors cannot be transposed: leave out transpose_a and transpose_b"));
    }
    let (Some((ka, mut out)), Some((kb, right))) =
        (cut(&a, shapes.attrs.bool("transpose_a")), cut(&b, !shapes.attrs.bool("transpose_b")))
    else {
        return Err(shape_error("both operands need at least one axis"));
    };
    if ka.is_some() && kb.is_some() && ka != kb {
        return Err(mismatch(shapes));
    }
    out.extend(right);
    if out.is_empty() {
        out.push(Some(1));
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// The product that `dot` is.
fn dot(attrs: &Attrs, signature: &Signature<'_>) -> Result<Gemm, OpError> {
    let (transpose_a, transpose_b) = (attrs.bool("transpose_a"), attrs.bool("transpose_b"));
    let (a, b) = (&signature.inputs[0].shape, &signature.inputs[1].shape);
    let (Some((k, left)), Some((_, right))) = (cut(a, transpose_a), cut(b, !transpose_b)) else {
        return Err(wrong_arity());
    };
    // A transposed operand is stored with its summed axis at the other end.
    Ok(Gemm {
        transpose_a: transpose_a && a.len() > 1,
        transpose_b: transpose_b && b.len() > 1,
        ..Gemm::new(checked_product(&left)?, checked_product(&right)?, k)
    })
}

fn bind_dot(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let product = dot(attrs, signature)?;
    let large = product.n.saturating_mul(product.k) >= LEAST_PACKED && product.n >= PANEL;
    if signature.inputs[0].dtype == DType::F32 && large && !product.is_deep() {
        let gemm = Sgemm::new(product.m, product.n, product.k, signature.options.isa);
        return Ok(Box::new(PackedDot { gemm, product }));
    }
    bind_gemm(product, signature)
}

/// Elements of a right operand that is packed, and the columns that fill a panel.
const LEAST_PACKED: usize = 1 << 10;
const PANEL: usize = 16;

/// A product in single precision whose right operand is packed: once, if it is constant.
struct PackedDot {
    gemm: Sgemm,
    product: Gemm,
}

impl Kernel for PackedDot {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([a, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let Gemm { m, n, k, .. } = self.product;
        let a = elements(a)?;
        let a = if self.product.transpose_a { Matrix::rows(a, m).transposed() } else { Matrix::rows(a, k) };
        let packed = packed_elements(packed, self.gemm.packed_len())?;
        self.gemm.run(a, packed, Epilogue::default(), elements_mut(out)?, n, &mut [], call.par);
        Ok(())
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        format!("product {}", self.gemm.isa())
    }

    fn cost_ns(&self) -> u64 {
        let Gemm { m, n, k, .. } = self.product;
        1_000 + (n.saturating_mul(k).saturating_mul(m.max(8)) / 60) as u64
    }
}

impl Packing for PackedDot {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.gemm.packed_len() * size_of::<f32>()
    }

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [b] = inputs else { return Err(wrong_arity()) };
        let Gemm { n, k, transpose_b, .. } = self.product;
        let b = elements(b)?;
        let b = if transpose_b { Matrix::rows(b, k).transposed() } else { Matrix::rows(b, n) };
        self.gemm.pack_in_parallel(par, b, scratch(out, self.gemm.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        let Gemm { n, k, transpose_b, .. } = self.product;
        format!("product {} {k}x{n}{}", self.gemm.isa(), if transpose_b { ", transposed" } else { "" })
    }
}

/// Batch axes, rows, columns of an operand of `batch_dot`, as it is after transposing.
pub(crate) fn matrix(dims: &[Option<usize>], transpose: bool) -> Option<(PartialDims, Option<usize>, Option<usize>)> {
    let [batch @ .., rows, columns] = dims else { return None };
    let (rows, columns) = if transpose { (*columns, *rows) } else { (*rows, *columns) };
    Some((batch.iter().copied().collect(), rows, columns))
}

/// The form of a product.
pub(super) fn product_form(product: Gemm) -> MaybeForm {
    let Gemm { batch, m, n, k, transpose_a, transpose_b, alpha, .. } = product;
    let matrix = |array, [rows, columns]: [usize; 2], transposed: bool| {
        let steps = if transposed { [1, rows as isize] } else { [columns as isize, 1] };
        MatrixSteps { array, first: 0, steps: [(rows * columns) as isize, 0, steps[0], steps[1]] }
    };
    let form = KernelForm::Product {
        batch: [batch, 1],
        size: [m, n, k],
        operands: [matrix(0, [m, k], transpose_a), matrix(1, [k, n], transpose_b), matrix(0, [m, n], false)],
        alpha,
        epilogue: SumEpilogue::default(),
    };
    Ok(Some(form))
}

pub(super) fn bind_gemm(product: Gemm, signature: &Signature<'_>) -> BoundKernel {
    in_single(signature, |signature| {
        let product = product.on(signature.options.isa);
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(kernel_fn(signature, move |call| {
            let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
            gemm(call.par, product, a, b, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_last_axis_meets_the_first() {
        let x: Vec<f32> = (0..6).map(|v| v as f32).collect();
        let y = OpTest::new("dot").f32([2, 3], &x).f32([3], &[1.0, 10.0, 100.0]).run();
        assert_eq!(f32s(&y, [2]), [210.0, 543.0]);
        let y = OpTest::new("dot").attr("transpose_a", "1").f32([2, 3], &x).f32([2, 1], &[1.0, 10.0]).run();
        assert_eq!(f32s(&y, [3, 1]), [30.0, 41.0, 52.0]);
        let y = OpTest::new("dot").f32([2], &[1.0, 2.0]).f32([2], &[3.0, 4.0]).run();
        assert_eq!(f32s(&y, [1]), [11.0]);
        OpTest::new("dot").f32([2, 3], &x).f32([2, 3], &x).error();
    }

    #[test]
    fn two_vectors_are_not_transposed() {
        for name in ["transpose_a", "transpose_b"] {
            let vectors = || OpTest::new("dot").attr(name, "1").f32([2], &[1.0, 2.0]);
            assert!(vectors().f32([2], &[3.0, 4.0]).error().message.contains("cannot be transposed"), "{name}");
        }
        let y = OpTest::new("dot").attr("transpose_b", "1").f32([2], &[1.0, 2.0]).f32([1, 2], &[3.0, 4.0]).run();
        assert_eq!(f32s(&y, [1]), [11.0]);
    }

    #[test]
    fn large_products_agree_however_the_operands_are_stored() {
        let (a, b): (Vec<f32>, Vec<f32>) = (
            (0..3 * 40).map(|v| (v % 7) as f32 - 3.0).collect(),
            (0..40 * 50).map(|v| (v % 11) as f32 - 5.0).collect(),
        );
        let want: Vec<f32> = (0..150).map(|i| (0..40).map(|k| a[i / 50 * 40 + k] * b[k * 50 + i % 50]).sum()).collect();
        let turned = |m: &[f32], rows: usize, columns: usize| -> Vec<f32> {
            (0..m.len()).map(|i| m[i % rows * columns + i / rows]).collect()
        };
        let of = |a: ([usize; 2], &[f32]), b: ([usize; 2], &[f32]), turn: [&str; 2]| {
            let test = OpTest::new("dot").attr("transpose_a", turn[0]).attr("transpose_b", turn[1]);
            f32s(&test.f32(a.0, a.1).f32(b.0, b.1).run(), [3, 50])
        };
        let (at, bt) = (turned(&a, 3, 40), turned(&b, 40, 50));
        assert_eq!(of(([3, 40], &a), ([40, 50], &b), ["0", "0"]), want);
        assert_eq!(of(([40, 3], &at), ([50, 40], &bt), ["1", "1"]), want);
        assert_eq!(of(([3, 40], &a), ([50, 40], &bt), ["0", "1"]), want);
    }

    #[test]
    fn long_sums_need_no_packed_operand() {
        let k = 140_000;
        for n in [2, 17] {
            let x: Vec<f32> = (0..n * k).map(|i| (i % 3) as f32 - 1.0).collect();
            let product = OpTest::new("dot").attr("transpose_a", "1").f32([k, n], &x).f32([k, n], &x);
            assert!(product.kernel().packing().is_none());
            let column = |j: usize| x.iter().skip(j).step_by(n);
            let of = |place: usize| column(place / n).zip(column(place % n)).map(|(a, b)| a * b).sum::<f32>();
            assert_eq!(f32s(&product.run(), [n, n]), (0..n * n).map(of).collect::<Vec<f32>>());
        }
    }
}
