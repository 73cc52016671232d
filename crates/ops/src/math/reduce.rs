//! Reductions over any axes: a row each in the table of reductions (`reduce/folds.rs` of the
//! kernels).

use crate::prelude::*;
use mxrt_kernels::reduce::{Reduction, reduce};
use mxrt_kernels::strides::{broadcast, contiguous};
use smallvec::SmallVec;

const ATTRS: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to reduce; all if not given or empty."),
    AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep reduced axes with size 1."),
    AttrDef::new("exclude", AttrKind::Bool, "False", "Reduce the axes that are not given."),
];

macro_rules! operators {
    ($($reduction:ident $([$name:literal $($alias:literal)*])? $doc:literal $folds:tt)*) => {
        /// Rows of the table.
        pub static OPS: &[OpDef] = &[$($(OpDef {
            name: $name,
            aliases: &[$($alias),*],
            doc: $doc,
            attrs: ATTRS,
            infer_shape,
            bind: |attrs, signature| {
                let reduced = reduced_axes(attrs, signature.inputs[0].shape.len())?;
                bind_reduction(Reduction::$reduction, reduced, signature)
            },
            form: |attrs, signature| {
                let reduced = reduced_axes(attrs, signature.inputs[0].shape.len())?;
                reduction_form(Reduction::$reduction, &reduced, signature)
            },
            rewrites: &Rewrites { row_wise: keeps_rows, ..Rewrites::NONE },
            ..OpDef::BASE
        },)?)*];
    };
}
mxrt_kernels::reductions!(operators);

/// Whether the axis of the rows is not reduced.
fn keeps_rows(attrs: &Attrs, signature: &Signature<'_>, divided: &[bool]) -> bool {
    let rank = signature.inputs.first().map_or(0, |t| t.shape.len());
    rows_of_data(attrs, signature, divided) && reduced_axes(attrs, rank).is_ok_and(|axes| axes.first() == Some(&false))
}

/// Whether each axis is reduced, by position.
pub(crate) type Reduced = SmallVec<[bool; 6]>;

/// The axes that `axis` and `exclude` name.
pub(crate) fn reduced_axes(attrs: &Attrs, rank: usize) -> Result<Reduced, OpError> {
    let exclude = attrs.declares("exclude") && attrs.bool("exclude");
    let axes = attrs.opt_ints("axis").unwrap_or(&[]);
    if axes.is_empty() {
        return Ok(smallvec::smallvec![true; rank]);
    }
    let mut reduced: Reduced = smallvec::smallvec![exclude; rank];
    for axis in resolve_axes(axes, rank)? {
        reduced[axis] = !exclude;
    }
    Ok(reduced)
}

/// The shape that is left; a full reduction has one element.
pub(crate) fn left_shape(dims: &[Option<usize>], reduced: &[bool], keepdims: bool) -> PartialShape {
    let axes = dims.iter().zip(reduced);
    let left: SmallVec<[Option<usize>; 6]> = if keepdims {
        axes.map(|(d, r)| if *r { Some(1) } else { *d }).collect()
    } else {
        axes.filter(|(_, r)| !**r).map(|(d, _)| *d).collect()
    };
    if left.is_empty() { Shape::new(&[1]).into() } else { PartialShape::from_dims(left) }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let reduced = reduced_axes(shapes.attrs, dims.len())?;
    shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
}

/// MXNet's compensated nansum loses an infinite sum to NaN as soon as anything is added after the
/// infinity.
fn poison_infinite_sums<T: Element>(par: &dyn Par, x: &[T], shape: &[usize], reduced: &[bool], out: &mut [T]) {
    let infinite = |v: T| v.to_f64().is_infinite();
    if !out.iter().any(|v| infinite(*v)) {
        return;
    }
    let kept: Vec<usize> = shape.iter().zip(reduced).map(|(n, r)| if *r { 1 } else { *n }).collect();
    let strides = broadcast(&kept, shape);
    let steps = contiguous(shape);
    let mut seen = Scratch::filled(par, out.len(), false);
    for (i, v) in x.iter().enumerate() {
        let place = |axis: usize| i / steps[axis] as usize % shape[axis] * strides[axis] as usize;
        let to: usize = (0..shape.len()).map(place).sum();
        if seen[to] && !v.nan() && infinite(out[to]) {
            out[to] = T::from_f64(f64::NAN);
        }
        seen[to] |= infinite(*v);
    }
}

/// The form of a reduction to an output of the same dtype.
pub(crate) fn reduction_form(reduction: Reduction, reduced: &[bool], signature: &Signature<'_>) -> MaybeForm {
    let reduced = reduced.to_vec();
    match signature.inputs[0].dtype {
        // Of no elements the operator itself says that none is the largest.
        DType::Bool if signature.inputs[0].shape.size() == 0 => Ok(None),
        DType::Bool => Ok(Some(KernelForm::Truths { every: is_of_everything(reduction), reduced })),
        dtype => for_numeric(dtype, KernelForm::Reduce { reduction, reduced }),
    }
}

/// The error of a largest or smallest element among none.
pub(crate) fn without_elements(shape: &Shape) -> OpError {
    shape_error(format!("the input {shape} has no elements along the reduced axes, so none is the largest or smallest"))
}

/// A reduction to an output of the same dtype.
pub(crate) fn bind_reduction(reduction: Reduction, reduced: Reduced, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let extreme = matches!(reduction, Reduction::Max | Reduction::Min);
    if extreme && signature.outputs[0].shape.size() > 0 && shape.size() == 0 {
        return Err(without_elements(shape));
    }
    if signature.inputs[0].dtype == DType::Bool {
        return Ok(reduction_of_bool(reduction, reduced, signature));
    }
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (&call.inputs[0], elements_mut(&mut call.outputs[0])?);
        let (values, shape) = (elements::<T>(x)?, x.shape);
        reduce(call.par, reduction, values, shape, &reduced, out);
        if reduction == Reduction::NanSum && T::FLOAT {
            poison_infinite_sums(call.par, values, shape, &reduced, out);
        }
        Ok(())
    })))
}

/// Whether a reduction to bool says that everything is true. MXNet adds bool to bool, so a sum is
/// whether anything is true, and a product whether everything is.
fn is_of_everything(reduction: Reduction) -> bool {
    matches!(reduction, Reduction::Prod | Reduction::NanProd | Reduction::Min)
}

/// A reduction to bool.
fn reduction_of_bool(reduction: Reduction, reduced: Reduced, signature: &Signature<'_>) -> Box<dyn Kernel> {
    let everything = is_of_everything(reduction);
    kernel_fn(signature, move |call| {
        let (x, out) = (&call.inputs[0], elements_mut::<u8>(&mut call.outputs[0])?);
        if x.is_empty() {
            out.fill(u8::from(everything));
            return Ok(());
        }
        let fold = if everything { Reduction::Min } else { Reduction::Max };
        reduce(call.par, fold, elements::<u8>(x)?, x.shape, &reduced, out);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s, f32s};
    use mxrt_tensor::DType;

    #[test]
    fn sums_of_bool_are_whether_anything_is_true_and_products_whether_all_is() {
        let of = |op: &str| {
            let rows = OpTest::new(op).attr("axis", "1").bools(&[3, 2], &[true, true, false, true, false, false]).run();
            assert_eq!(rows.tensor.dtype, DType::Bool, "{op}");
            rows.values::<u8>()
        };
        for op in ["sum", "mean", "nansum", "max", "norm"] {
            assert_eq!(of(op), [1, 1, 0], "{op}");
        }
        for op in ["prod", "nanprod", "min"] {
            assert_eq!(of(op), [1, 0, 0], "{op}");
        }
        assert_eq!(OpTest::new("prod").attr("axis", "1").bools(&[2, 0], &[]).run().values::<u8>(), [1, 1]);
    }

    fn of(op: &str, attrs: &[(&str, &str)]) -> OpTest {
        let x: Vec<f32> = (1..=6).map(|v| v as f32).collect();
        OpTest::new(op).attrs(attrs).f32([2, 3], &x)
    }

    #[test]
    fn there_is_no_largest_element_among_none() {
        let empty = |op: &str, axis: &str| OpTest::new(op).attr("axis", axis).f32([0, 3], &[]);
        for op in ["max", "min", "argmax", "argmin"] {
            let error = empty(op, "0").error();
            assert!(error.message.contains("(0, 3) has no elements along the reduced axes"), "{}", error.message);
            assert_eq!(f32s(&empty(op, "1").run(), [0]), [0.0; 0]);
        }
        assert!(OpTest::new("max").f32([0, 3], &[]).error().message.contains("no elements"));
        assert!(OpTest::new("argmax_channel").f32([2, 0], &[]).error().message.contains("no elements"));
        assert_eq!(f32s(&empty("sum", "0").run(), [3]), [0.0; 3]);
    }

    /// Sums of half precision are made in single precision, and rounded once.
    #[test]
    fn means_of_half_precision_do_not_overflow_on_the_way() {
        let ones = OpTest::new("mean").f16([70_000], &vec![1.0; 70_000]).run();
        assert_eq!(f16s(&ones, [1]), [1.0]);
        let columns = OpTest::new("mean").attr("axis", "0").f16([70_000, 2], &vec![1.0; 140_000]).run();
        assert_eq!(f16s(&columns, [2]), [1.0, 1.0]);
    }

    #[test]
    fn axes_may_be_chosen_kept_and_excluded() {
        assert_eq!(f32s(&of("sum", &[]).run(), [1]), [21.0]);
        assert_eq!(f32s(&of("sum", &[("axis", "()")]).run(), [1]), [21.0]);
        assert_eq!(f32s(&of("max", &[("axis", "-1"), ("keepdims", "1")]).run(), [2, 1]), [3.0, 6.0]);
        assert_eq!(f32s(&of("mean", &[("axis", "1"), ("exclude", "True")]).run(), [3]), [2.5, 3.5, 4.5]);
        for axis in ["2", "(0, 0)", "-3"] {
            of("sum", &[("axis", axis)]).error();
        }
    }
}
