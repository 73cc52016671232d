//! Arithmetic, comparison and logic of an array and a number: a row each in the table of functions
//! of two numbers (`binary.rs` of the kernels).

use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Binary};

/// The operand that the number is.
#[derive(Clone, Copy)]
pub(crate) enum ScalarSide {
    Left,
    Right,
}

pub(crate) const ATTRS: &[AttrDef] = &[
    AttrDef::new("scalar", AttrKind::Float, "1", "The number.").wide(),
    AttrDef::new("is_int", AttrKind::Bool, "True", "Whether the number is whole; if not, whole arrays become float64."),
];

macro_rules! scalar_op {
    ($name:literal, $aliases:expr, $function:expr, $side:expr, $elementwise:expr, $doc:expr) => {
        OpDef {
            name: $name,
            aliases: $aliases,
            doc: $doc,
            attrs: ATTRS,
            infer_dtype,
            bind: |attrs, signature| bind($function, $side, attrs.float("scalar"), signature),
            form: |attrs, signature| form($function, $side, attrs, signature),
            rewrites: &Rewrites {
                elementwise: |attrs| Some($elementwise($function, attrs.float("scalar") as f32)),
                ..Rewrites::NONE
            },
            ..OpDef::BASE
        }
    };
}

macro_rules! operators {
    (
        $(
            $function:ident $what:literal
            $(same_shape [$same_shape:literal $($same_shape_alias:literal)*])?
            $(broadcast [$broadcast:literal $($broadcast_alias:literal)*])?
            $(scalar [$scalar:literal $($scalar_alias:literal)*])?
            $(scalar_left [$scalar_left:literal $($scalar_left_alias:literal)*])?
            { $($code:tt)* }
        )*
    ) => {
        /// Rows of the table.
        pub static OPS: &[OpDef] = &[
            $($(scalar_op!(
                $scalar,
                &[$($scalar_alias),*],
                Binary::$function,
                ScalarSide::Right,
                Elementwise::WithScalar,
                concat!("Of an array and a number, ", $what, ".")
            ),)?)*
            $($(scalar_op!(
                $scalar_left,
                &[$($scalar_left_alias),*],
                Binary::$function,
                ScalarSide::Left,
                Elementwise::OfScalar,
                concat!("Of a number on the left and an array on the right, ", $what, ".")
            ),)?)*
        ];
    };
}
mxrt_kernels::binary_functions!(operators);

/// Binds the operator. The number takes the type of the array first, as in MXNet: 2.7 is 2 with
/// integers.
pub(crate) fn bind(function: Binary, side: ScalarSide, number: f64, signature: &Signature<'_>) -> BoundKernel {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from != to {
        return bind_converted(function, side, number, signature);
    }
    let cost = elementwise_ns(signature, binary_picoseconds(function, signature));
    dispatch!(from, all, T => {
        let number = T::from_f64(number);
        Ok(costed_kernel_fn("plain", cost, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let out = elements_mut(&mut call.outputs[0])?;
            match side {
                ScalarSide::Left => elementwise::scalar_binary(call.par, function, number, x, out),
                ScalarSide::Right => elementwise::binary_scalar(call.par, function, x, number, out),
            }
            Ok(())
        }))
    })
}

/// The form holds the number as the type has it in which the operator computes.
pub(crate) fn form(function: Binary, side: ScalarSide, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let number = attrs.float("scalar");
    let number: Result<f64, OpError> = match (signature.inputs[0].dtype, signature.outputs[0].dtype) {
        (from, to) if from == to => dispatch!(from, all, T => Ok(T::from_f64(number).to_f64())),
        (from, DType::F64) => dispatch!(from, whole, _T => Ok(number)),
        (from, _) => dispatch!(from, whole, _T => Ok(Element::to_f64(number as i64))),
    };
    Ok(Some(KernelForm::WithNumber { function, number: number?, first: matches!(side, ScalarSide::Left) }))
}

/// A fractional number makes doubles of whole arrays; booleans never stay booleans.
pub(crate) fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let whole = dtypes.attrs.bool("is_int");
    match dtypes.inputs[0] {
        Some(DType::Bool) => dtypes.set_output(0, if whole { DType::I64 } else { DType::F64 }),
        Some(dtype) if !dtype.is_float() && !whole => dtypes.set_output(0, DType::F64),
        _ => dtypes.all_same(),
    }
}

/// The array is converted to the dtype of the result first.
fn bind_converted(function: Binary, side: ScalarSide, number: f64, signature: &Signature<'_>) -> BoundKernel {
    if signature.outputs[0].dtype == DType::F64 {
        converted::<f64>(function, side, number, signature)
    } else {
        converted::<i64>(function, side, number as i64, signature)
    }
}

fn converted<D: Element>(function: Binary, side: ScalarSide, number: D, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, whole, S => Ok(kernel_fn(signature, move |call| {
        let x = elements::<S>(&call.inputs[0])?;
        let x = Scratch::map(call.par, x, |v| D::from_i64(v.to_i64()));
        let out = elements_mut(&mut call.outputs[0])?;
        match side {
            ScalarSide::Left => elementwise::scalar_binary(call.par, function, number, &x, out),
            ScalarSide::Right => elementwise::binary_scalar(call.par, function, &x, number, out),
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_number_stands_on_the_side_the_name_says() {
        let of = |op: &str| f32s(&OpTest::new(op).attr("scalar", "8").f32([2], &[2.0, 4.0]).run(), [2]);
        assert_eq!(of("_minus_scalar"), [-6.0, -4.0]);
        assert_eq!(of("_rminus_scalar"), [6.0, 4.0]);
        assert_eq!(of("_RDivScalar"), [4.0, 2.0]);
        assert_eq!(of("_greater_scalar"), [0.0, 0.0]);
    }

    #[test]
    fn a_fraction_is_truncated_before_it_meets_integers() {
        let y = OpTest::new("_mul_scalar").attr("scalar", "2.7").i32([2], &[2, -3]).run();
        assert_eq!(y.values::<i32>(), [4, -6]);
        let y = OpTest::new("_mul_scalar").attr("scalar", "2.5").attr("is_int", "0").i32([2], &[2, -3]).run();
        assert_eq!(y.values::<f64>(), [5.0, -7.5]);
    }
}
