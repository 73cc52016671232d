//! Elements picked by a condition, and places of those that are not 0.

use crate::index::where_op::{check_truths, truths};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::index::select;
use mxrt_kernels::shape::copy_strided;
use mxrt_kernels::strides::broadcast;
use mxrt_kernels::{Element, Par};
use mxrt_tensor::{DType, PartialShape, Shape, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_where",
        doc: "Elements of x where condition is not 0, else of y; all three are broadcast.",
        inputs: Inputs::Fixed(&["condition", "x", "y"]),
        ignores_unknown_attrs: true,
        infer_shape: infer_broadcast,
        infer_dtype: |dtypes| {
            let Some(dtype) = dtypes.inputs[1].or(dtypes.inputs[2]).or(dtypes.outputs[0]) else { return Ok(()) };
            dtypes.set_input(1, "x", dtype)?;
            dtypes.set_input(2, "y", dtype)?;
            dtypes.set_output(0, dtype)
        },
        bind: |_, signature| bind_where([None, None], signature),
        form: |_, signature| where_form([None, None], signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_where_lscalar",
        doc: "A number where condition is not 0, else elements of the array.",
        inputs: Inputs::Fixed(&["condition", "x"]),
        bind: |attrs, signature| bind_where([Some(attrs.float("scalar")), None], signature),
        form: |attrs, signature| where_form([Some(attrs.float("scalar")), None], signature),
        ..WITH_NUMBER
    },
    OpDef {
        name: "_npi_where_rscalar",
        doc: "Elements of the array where condition is not 0, else a number.",
        inputs: Inputs::Fixed(&["condition", "y"]),
        bind: |attrs, signature| bind_where([None, Some(attrs.float("scalar"))], signature),
        form: |attrs, signature| where_form([None, Some(attrs.float("scalar"))], signature),
        ..WITH_NUMBER
    },
    OpDef {
        name: "_npi_where_scalar2",
        doc: "One number where condition is not 0, else another, in float32.",
        inputs: Inputs::Fixed(&["condition"]),
        attrs: &[
            AttrDef::new("x", AttrKind::Float, "0", "Where condition is not 0.").wide(),
            AttrDef::new("y", AttrKind::Float, "0", "Elsewhere.").wide(),
        ],
        infer_dtype: |dtypes| dtypes.set_output(0, DType::F32),
        bind: |attrs, signature| bind_where([Some(attrs.float("x")), Some(attrs.float("y"))], signature),
        form: |attrs, signature| where_form([Some(attrs.float("x")), Some(attrs.float("y"))], signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_boolean_mask_assign_scalar",
        doc: "The data with a number where the mask is not 0; the axes of the mask are those of the \
              data from start_axis on.",
        inputs: Inputs::Fixed(&["data", "mask"]),
        attrs: &[
            AttrDef::required("value", AttrKind::Float, "The number.").wide(),
            AttrDef::new("start_axis", AttrKind::IntFrom(0), "0", "The first axis of the mask."),
        ],
        bind: bind_assign,
        ..ASSIGN
    },
    OpDef {
        name: "_npi_boolean_mask_assign_tensor",
        doc: "The data with the elements of value, in order, where the mask is not 0; the axes of the \
              mask are those of the data from start_axis on.",
        inputs: Inputs::Fixed(&["data", "mask", "value"]),
        attrs: &[AttrDef::new("start_axis", AttrKind::IntFrom(0), "0", "The first axis of the mask.")],
        bind: bind_assign,
        ..ASSIGN
    },
    OpDef {
        name: "_npx_nonzero",
        aliases: &["_npi_nonzero"],
        doc: "The indices of the elements that are not 0: a row for each, in int64.",
        inputs: Inputs::Fixed(&["x"]),
        ignores_unknown_attrs: true,
        infer_shape: |shapes| {
            let Some(rank) = shapes.rank(0) else { return Ok(()) };
            shapes.set_output(0, PartialShape::from_dims([None, Some(rank.max(1))]))
        },
        infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
        bind: bind_nonzero,
        rewrites: &Rewrites {
            late_shapes: Some(|par, _, inputs| {
                let [x] = inputs else { return Err(wrong_arity()) };
                let count = truths(par, x)?.iter().filter(|t| **t != 0).count();
                Ok(vec![Shape::new(&[count, x.shape.len().max(1)])])
            }),
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npx_constraint_check",
        doc: "True where all elements of the input are; else an error with the message.",
        inputs: Inputs::Fixed(&["input"]),
        attrs: &[AttrDef::new("msg", AttrKind::Str, "Constraint violated.", "The message.")],
        infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([])),
        infer_dtype: |dtypes| {
            dtypes.set_input(0, "input", DType::Bool)?;
            dtypes.set_output(0, DType::Bool)
        },
        bind: |attrs, signature| {
            let message = attrs.str("msg").to_owned();
            Ok(kernel_fn(signature, move |call| {
                if elements::<u8>(&call.inputs[0])?.contains(&0) {
                    return Err(value_error(message.clone()));
                }
                elements_mut::<u8>(&mut call.outputs[0])?.fill(1);
                Ok(())
            }))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_npi_share_memory",
        doc: "Whether two arrays share memory.",
        inputs: Inputs::Fixed(&["a", "b"]),
        ignores_unknown_attrs: true,
        infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([])),
        infer_dtype: |dtypes| dtypes.set_output(0, DType::Bool),
        bind: |_, signature| {
            Ok(kernel_fn(signature, |call| {
                let ([a, b], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
                let (a, b) = (a.bytes().as_ptr_range(), b.bytes().as_ptr_range());
                elements_mut::<u8>(out)?.fill((a.start < b.end && b.start < a.end).into());
                Ok(())
            }))
        },
        // What it computes depends on where the arrays are, not on what they hold.
        random: true,
        ..OpDef::BASE
    },
];

const WITH_NUMBER: OpDef = OpDef {
    attrs: &[AttrDef::new("scalar", AttrKind::Float, "0", "The number.").wide()],
    infer_shape: infer_broadcast,
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[1].or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(1, "the array", dtype)?;
        dtypes.set_output(0, dtype)
    },
    ..OpDef::BASE
};

const ASSIGN: OpDef = OpDef {
    infer_shape: |shapes| {
        let attrs = shapes.attrs;
        if let (Some(data), Some(mask)) = (shapes.input(0), shapes.input(1)) {
            let start = attrs.count("start_axis");
            if data.get(start..).is_none_or(|axes| !axes.starts_with(&mask)) {
                return Err(shape_error(format!(
                    "the mask has shape {mask}, which is not that of the data {data} from axis {start} on"
                )));
            }
        }
        shapes.same_as_first()
    },
    infer_dtype: |dtypes| {
        let Some(dtype) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
        dtypes.set_input(0, "data", dtype)?;
        dtypes.set_output(0, dtype)
    },
    ..OpDef::BASE
};

/// The shape that all inputs broadcast to.
fn infer_broadcast(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let all = shapes.inputs.iter().map(PartialShape::complete).collect::<Option<Vec<Shape>>>();
    let Some(all) = all else { return Ok(()) };
    shapes.set_output(0, common_shape(&all)?)
}

pub(super) fn common_shape(all: &[Shape]) -> Result<Shape, OpError> {
    let rank = all.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut common = vec![1; rank];
    for shape in all {
        for (want, n) in common[rank - shape.len()..].iter_mut().zip(shape.iter()) {
            if *want == 1 {
                *want = *n;
            } else if *n != 1 && n != want {
                let list: Vec<String> = all.iter().map(Shape::to_string).collect();
                return Err(shape_error(format!(
                    "operands could not be broadcast together with shapes {}",
                    list.join(" ")
                )));
            }
        }
    }
    Ok(Shape::from(common))
}

/// The elements repeated to a shape.
fn spread<'a, T: Element>(
    par: &dyn Par,
    x: &'a [T],
    shape: &[usize],
    out: &[usize],
) -> Result<ReadElements<'a, T>, OpError> {
    if shape == out {
        return Ok(ReadElements::Borrowed(x));
    }
    let mut made = Scratch::new(par, out.iter().product());
    copy_strided(par, x, 0, &broadcast(shape, out), out, &mut made).map_err(kernel_error)?;
    Ok(ReadElements::Made(made))
}

/// The form holds numbers as the type of the result has them.
fn where_form(numbers: [Option<f64>; 2], signature: &Signature<'_>) -> MaybeForm {
    check_truths(signature.inputs[0].dtype)?;
    dispatch!(signature.outputs[0].dtype, all, T => {
        let numbers = numbers.map(|number| number.map(|number| T::from_f64(number).to_f64()));
        Ok(Some(KernelForm::Choose { numbers }))
    })
}

/// `numbers` take the places of x and y.
fn bind_where(numbers: [Option<f64>; 2], signature: &Signature<'_>) -> BoundKernel {
    check_truths(signature.inputs[0].dtype)?;
    let shape = signature.outputs[0].shape.clone();
    dispatch!(signature.outputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let truths = truths(call.par, &call.inputs[0])?;
        let condition = spread(call.par, &truths, call.inputs[0].shape, &shape)?;
        let mut arrays = call.inputs[1..].iter();
        let mut operand = |number: Option<f64>| match (number, arrays.as_slice().first()) {
            (Some(number), _) => Ok(ReadElements::Made(Scratch::filled(call.par, condition.len(), T::from_f64(number)))),
            (None, Some(array)) => {
                arrays.next();
                spread(call.par, elements::<T>(array)?, array.shape, &shape)
            }
            (None, None) => Err(wrong_arity()),
        };
        let (x, y) = (operand(numbers[0])?, operand(numbers[1])?);
        select(call.par, &condition, &x, &y, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

fn bind_assign(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    check_truths(signature.inputs[1].dtype)?;
    let start = attrs.count("start_axis");
    let number = attrs.declares("value").then(|| attrs.float("value"));
    let dtype = signature.inputs[0].dtype;
    if let Some(value) = signature.inputs.get(2)
        && value.dtype != dtype
    {
        return crate::execution::in_dtypes(
            signature,
            |i| if i == 2 { dtype } else { signature.inputs[i].dtype },
            |_| dtype,
            |signature| bind_assign(attrs, signature),
        );
    }
    dispatch!(dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let (data, mask) = (&call.inputs[0], truths(call.par, &call.inputs[1])?);
        let mask: &[u8] = &mask;
        let outer = data.shape[..start].iter().product::<usize>();
        let inner = data.shape[start + call.inputs[1].shape.len()..].iter().product::<usize>();
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        out.copy_from_slice(elements::<T>(data)?);
        let chosen = places_of(call.par, mask);
        let values = match (number, call.inputs.get(2)) {
            (Some(number), _) => {
                ReadElements::Made(Scratch::filled(call.par, outer * chosen.len() * inner, T::from_f64(number)))
            }
            (None, Some(value)) => values_for(call.par, value, data.shape, start, chosen.len(), call.inputs[1].shape.len())?,
            (None, None) => return Err(wrong_arity()),
        };
        let places = (0..outer).flat_map(|block| chosen.iter().map(move |place| (block, place)));
        for (i, (block, place)) in places.enumerate() {
            let to = (block * mask.len() + place) * inner;
            out[to..to + inner].copy_from_slice(&values[i * inner..(i + 1) * inner]);
        }
        Ok(())
    })))
}

/// The values broadcast to the elements that the mask picks.
fn values_for<'a, T: Element>(
    par: &dyn Par,
    value: &TensorRef<'a>,
    data: &[usize],
    start: usize,
    chosen: usize,
    mask_axes: usize,
) -> Result<ReadElements<'a, T>, OpError> {
    let picked: Shape =
        data[..start].iter().copied().chain([chosen]).chain(data[start + mask_axes..].iter().copied()).collect();
    let fits = value.shape.len() <= picked.len()
        && value.shape.iter().rev().zip(picked.iter().rev()).all(|(n, want)| n == want || *n == 1);
    if !fits {
        return Err(shape_error(format!(
            "value has shape {}, but the mask picks elements of shape {picked}",
            value.shape
        )));
    }
    spread(par, elements::<T>(value)?, value.shape, &picked)
}

/// The places of what is not 0.
fn places_of(par: &dyn Par, mask: &[u8]) -> Scratch<usize> {
    let count = mask.iter().filter(|mark| **mark != 0).count();
    Scratch::collect(par, count, (0..mask.len()).filter(|i| mask[*i] != 0))
}

fn bind_nonzero(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    check_truths(signature.inputs[0].dtype)?;
    Ok(kernel_fn(signature, |call| {
        let x = &call.inputs[0];
        let found = places_of(call.par, &truths(call.par, x)?);
        let rank = x.shape.len().max(1);
        let out = elements_mut::<i64>(&mut call.outputs[0])?;
        if out.len() != found.len() * rank {
            return Err(value_error("the input has another number of elements that are not 0 than rows come out"));
        }
        for (row, place) in out.chunks_mut(rank).zip(found.iter()) {
            let mut rest = *place;
            for (index, n) in row.iter_mut().rev().zip(x.shape.iter().rev().chain([&1])) {
                *index = (rest % n.max(&1)) as i64;
                rest /= n.max(&1);
            }
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

    #[test]
    fn all_three_are_broadcast() {
        let y = OpTest::new("_npi_where").i32([2, 1], &[1, 0]).f32([2], &[1.0, 2.0]).f32([], &[9.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 9.0, 9.0]);
        let y = OpTest::new("_npi_where_lscalar").attr("scalar", "7").i32([2], &[1, 0]).f32([2], &X[..2]).run();
        assert_eq!(f32s(&y, [2]), [7.0, 2.0]);
        let y = OpTest::new("_npi_where_scalar2").attr("x", "1").attr("y", "2").i32([], &[0]).run();
        assert_eq!(f32s(&y, []), [2.0]);
        assert!(
            OpTest::new("_npi_where")
                .i32([3], &[1; 3])
                .f32([2], &X[..2])
                .f32([2], &X[..2])
                .error()
                .message
                .contains("(3,) (2,) (2,)")
        );
    }

    #[test]
    fn a_mask_picks_what_is_assigned() {
        let data = |op: &str| OpTest::new(op).f32([2, 2], &X).i32([2], &[0, 1]);
        let y = data("_npi_boolean_mask_assign_scalar").attr("value", "9").run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 9.0, 9.0]);
        let y = data("_npi_boolean_mask_assign_tensor").f32([1, 2], &[8.0, 9.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 2.0, 8.0, 9.0]);
        let y = data("_npi_boolean_mask_assign_tensor").attr("start_axis", "1").f32([2, 1], &[8.0, 9.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [1.0, 8.0, 3.0, 9.0]);
        let error = data("_npi_boolean_mask_assign_tensor").f32([3], &[0.0; 3]).error();
        assert!(error.message.contains("(1, 2)"), "{}", error.message);
    }

    #[test]
    fn places_of_what_is_not_zero() {
        let y = OpTest::new("_npx_nonzero").f32([2, 2], &[0.0, 1.0, 2.0, 0.0]).run();
        assert_eq!((y.tensor.shape.to_vec(), y.values::<i64>()), (vec![2, 2], vec![0, 1, 1, 0]));
        assert_eq!(OpTest::new("_npx_nonzero").f32([0, 3], &[]).run().tensor.shape.to_vec(), [0, 2]);
    }
}
