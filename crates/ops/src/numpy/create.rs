//! Arrays made of nothing, or of the shape of another.

use super::CTX;
use crate::create::arange::{bind_range, range_form};
use crate::math::identity::{bind_fill, fill_form};
use crate::prelude::*;
use mxrt_kernels::Element;
use mxrt_tensor::{DType, Shape};

const DTYPES: AttrKind =
    AttrKind::OptDType(&["bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]);
const DTYPE: AttrDef = AttrDef::new("dtype", DTYPES, "float32", "dtype of the result; float32 if None.");
const SHAPE: AttrDef = AttrDef::new("shape", AttrKind::Shape, "()", "Shape of the result; () is a scalar.");
const WINDOW: OpDef = OpDef {
    attrs: &[AttrDef::new("M", AttrKind::OptInt, "None", "Number of points."), CTX, DTYPE],
    infer_shape: |shapes| {
        let Some(points) = shapes.attrs.opt_int("M") else { return Err(value_error("M must be given")) };
        shapes.set_output(0, Shape::new(&[usize::try_from(points).unwrap_or(0)]))
    },
    ..MADE
};

/// An array without inputs.
const MADE: OpDef = OpDef {
    inputs: Inputs::Fixed(&[]),
    attrs: &[SHAPE, CTX, DTYPE],
    infer_shape: crate::create::np_shape_from_attr,
    infer_dtype: crate::create::dtype_from_attr,
    ..OpDef::BASE
};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_zeros",
        doc: "An array of zeros.",
        bind: |_, signature| bind_fill(0.0, signature),
        form: |_, signature| fill_form(0.0, signature),
        ..MADE
    },
    OpDef {
        name: "_npi_ones",
        doc: "An array of ones.",
        bind: |_, signature| bind_fill(1.0, signature),
        form: |_, signature| fill_form(1.0, signature),
        ..MADE
    },
    OpDef {
        name: "_npi_identity",
        doc: "A square matrix with ones on its diagonal.",
        bind: |_, signature| bind_diagonal(0, signature),
        form: |_, signature| for_all(signature.outputs[0].dtype, KernelForm::Diagonal { right: 0 }),
        ..MADE
    },
    OpDef {
        name: "_npi_eye",
        doc: "A matrix of N rows and M columns (N if not given) with ones on its k-th diagonal.",
        attrs: &[
            AttrDef::required("N", AttrKind::IntFrom(0), "Number of rows.").wide(),
            AttrDef::new("M", AttrKind::OptInt, "None", "Number of columns; N if not given."),
            AttrDef::new("k", AttrKind::Int, "0", "Which diagonal: above the main one if positive.").wide(),
            CTX,
            DTYPE,
        ],
        infer_shape: |shapes| {
            let rows = shapes.attrs.int("N");
            let columns = shapes.attrs.opt_int("M").unwrap_or(rows);
            shapes.set_output(0, Shape::new(&extents("M", &[rows, columns])?))
        },
        bind: |attrs, signature| bind_diagonal(attrs.int("k"), signature),
        form: |attrs, signature| for_all(signature.outputs[0].dtype, KernelForm::Diagonal { right: attrs.int("k") }),
        ..MADE
    },
    OpDef {
        name: "_npi_arange",
        doc: "Values from start up to stop (not included) in steps; without stop from 0 up to start.",
        attrs: &[
            AttrDef::required("start", AttrKind::Float, "First value.").wide(),
            AttrDef::new("stop", AttrKind::OptFloat, "None", "End of the range.").wide(),
            AttrDef::new("step", AttrKind::Float, "1", "Distance between values.").wide(),
            AttrDef::new("repeat", AttrKind::IntFrom(1), "1", "How often each value is repeated."),
            AttrDef::new("infer_range", AttrKind::Bool, "False", "For MXNet; the length is start to stop."),
            CTX,
            DTYPE,
        ],
        infer_shape: |shapes| {
            let [start, stop, step] = range(shapes.attrs);
            let steps = ((stop - start) / step).ceil();
            if step == 0.0 || !steps.is_finite() {
                return Err(value_error(format!("the range from {start} to {stop} in steps of {step} has no length")));
            }
            let values = steps.max(0.0) * shapes.attrs.int("repeat") as f64;
            if values > 1e15 {
                return Err(value_error(format!("the range from {start} to {stop} in steps of {step} is too long")));
            }
            shapes.set_output(0, Shape::new(&[values as usize]))
        },
        bind: |attrs, signature| {
            let [start, _, step] = range(attrs);
            bind_range(start, step, attrs.int("repeat"), signature)
        },
        form: |attrs, signature| {
            let [start, _, step] = range(attrs);
            range_form(start, step, attrs.int("repeat"), signature)
        },
        ..MADE
    },
    OpDef {
        name: "_npi_logspace",
        doc: "num values from base^start to base^stop, whose logarithms are evenly spaced.",
        attrs: &[
            AttrDef::required("start", AttrKind::Float, "Logarithm of the first value.").wide(),
            AttrDef::required("stop", AttrKind::Float, "Logarithm of the end.").wide(),
            AttrDef::required("num", AttrKind::IntFrom(0), "Number of values."),
            AttrDef::new("endpoint", AttrKind::Bool, "True", "Whether the end is the last value."),
            AttrDef::new("base", AttrKind::Float, "10", "Base of the logarithms.").wide(),
            CTX,
            DTYPE,
        ],
        infer_shape: |shapes| shapes.set_output(0, Shape::new(&[shapes.attrs.count("num")])),
        bind: |attrs, signature| {
            let (start, stop, base) = (attrs.float("start"), attrs.float("stop"), attrs.float("base"));
            let num = attrs.count("num");
            let intervals = if attrs.bool("endpoint") { num.saturating_sub(1) } else { num };
            let step = if intervals == 0 { 0.0 } else { (stop - start) / intervals as f64 };
            bind_places(signature, move |i| base.powf(start + step * i as f64))
        },
        ..MADE
    },
    OpDef {
        name: "_npi_blackman",
        doc: "The Blackman window of M points.",
        bind: |_, signature| bind_window(|x| 0.42 - 0.5 * x.cos() + 0.08 * (2.0 * x).cos(), signature),
        ..WINDOW
    },
    OpDef {
        name: "_npi_hamming",
        doc: "The Hamming window of M points.",
        bind: |_, signature| bind_window(|x| 0.54 - 0.46 * x.cos(), signature),
        ..WINDOW
    },
    OpDef {
        name: "_npi_hanning",
        doc: "The Hann window of M points.",
        bind: |_, signature| bind_window(|x| 0.5 - 0.5 * x.cos(), signature),
        ..WINDOW
    },
    OpDef {
        name: "_npi_indices",
        doc: "The indices of a grid: for each axis, an array of the index along it.",
        attrs: &[
            AttrDef::required("dimensions", AttrKind::Shape, "Shape of the grid."),
            AttrDef::new("dtype", DTYPES, "int32", "dtype of the result."),
            CTX,
        ],
        infer_shape: |shapes| {
            let dims = extents("dimensions", shapes.attrs.ints("dimensions"))?;
            shapes.set_output(0, std::iter::once(dims.len()).chain(dims).collect::<Shape>())
        },
        bind: |_, signature| {
            let dims = signature.outputs[0].shape.get(1..).unwrap_or(&[]).to_vec();
            let size = dims.iter().product::<usize>();
            let steps: Vec<usize> = (0..dims.len()).map(|axis| dims[axis + 1..].iter().product()).collect();
            bind_places(signature, move |i| (i % size / steps[i / size] % dims[i / size]) as f64)
        },
        ..MADE
    },
    OpDef {
        name: "_npi_full_like",
        doc: "One value in the shape of an array, and in its dtype if none is given.",
        inputs: Inputs::Fixed(&["a"]),
        attrs: &[
            AttrDef::required("fill_value", AttrKind::Float, "The value.").wide(),
            CTX,
            AttrDef::new("dtype", DTYPES, "None", "dtype of the result."),
        ],
        infer_dtype: |dtypes| match dtypes.attrs.opt_dtype("dtype").or(dtypes.inputs[0]) {
            Some(dtype) => dtypes.set_output(0, dtype),
            None => Ok(()),
        },
        bind: |attrs, signature| bind_fill(attrs.float("fill_value"), signature),
        form: |attrs, signature| fill_form(attrs.float("fill_value"), signature),
        ..OpDef::BASE
    },
];

/// Start, stop and step: without a stop, start is one.
fn range(attrs: &Attrs) -> [f64; 3] {
    let start = attrs.float("start");
    let [start, stop] = attrs.opt_float("stop").map_or([0.0, start], |stop| [start, stop]);
    [start, stop, attrs.float("step")]
}

/// A kernel that computes every element from its place.
fn bind_places(signature: &Signature<'_>, value: impl Fn(usize) -> f64 + Send + Sync + 'static) -> BoundKernel {
    let value: Box<dyn Fn(usize) -> f64 + Send + Sync> = Box::new(value);
    if signature.outputs[0].dtype == DType::Bool {
        return Err(unsupported_dtype(DType::Bool, "numbers"));
    }
    dispatch!(signature.outputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        for (i, out) in elements_mut::<T>(&mut call.outputs[0])?.iter_mut().enumerate() {
            *out = T::from_f64(value(i));
        }
        Ok(())
    })))
}

fn bind_window(window: fn(f64) -> f64, signature: &Signature<'_>) -> BoundKernel {
    let points = signature.outputs[0].shape.size();
    if points == 1 {
        return bind_fill(1.0, signature);
    }
    let step = std::f64::consts::TAU / points.saturating_sub(1).max(1) as f64;
    bind_places(signature, move |i| window(step * i as f64))
}

fn bind_diagonal(k: i64, signature: &Signature<'_>) -> BoundKernel {
    let [_, columns] = signature.outputs[0].shape[..] else {
        return Err(shape_error(format!("shape must have two axes, got {}", signature.outputs[0].shape)));
    };
    dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        out.fill(T::ZERO);
        for (row, out) in out.chunks_mut(columns.max(1)).enumerate() {
            let column = (row as i64).checked_add(k).and_then(|c| usize::try_from(c).ok());
            if let Some(out) = column.and_then(|c| out.get_mut(c)) {
                *out = T::ONE;
            }
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn of(op: &str, attrs: &[(&str, &str)]) -> OpTest {
        attrs.iter().fold(OpTest::new(op), |t, (k, v)| t.attr(k, v))
    }

    #[test]
    fn empty_and_scalar_arrays_are_made() {
        assert_eq!(f32s(&of("_npi_zeros", &[("shape", "()")]).run(), []), [0.0]);
        assert_eq!(of("_npi_ones", &[("shape", "(0, 3)"), ("dtype", "bool")]).run().tensor.shape.to_vec(), [0, 3]);
        assert_eq!(f32s(&of("_npi_arange", &[("start", "1"), ("stop", "0")]).run(), [0]), [0.0; 0]);
        of("_npi_arange", &[("start", "0"), ("stop", "1"), ("step", "0")]).error();
        of("_npi_zeros", &[("shape", "(2, -3)")]).error();
    }

    #[test]
    fn values_follow_from_their_places() {
        let y = of("_npi_indices", &[("dimensions", "(2, 3)")]).run();
        assert_eq!(y.values::<i32>(), [0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2]);
        assert_close(&f32s(&of("_npi_hanning", &[("M", "3")]).run(), [3]), &[0.0, 1.0, 0.0]);
        assert_close(
            &f32s(&of("_npi_logspace", &[("start", "0"), ("stop", "2"), ("num", "3")]).run(), [3]),
            &[1.0, 10.0, 100.0],
        );
        assert_eq!(
            f32s(&of("_npi_eye", &[("N", "2"), ("M", "3"), ("k", "1")]).run(), [2, 3]),
            [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        );
    }
}
