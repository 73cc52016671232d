//! `_npi_ediff1d`: differences of neighbours, with what is put before and after them.

use crate::prelude::*;
use mxrt_kernels::elementwise::{self, Binary};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_ediff1d",
    doc: "Differences of neighbours of the flattened array, with elements before and after them.",
    inputs: Inputs::ByAttrs(|attrs| {
        match u8::from(attrs.bool("to_begin_arr_given")) + u8::from(attrs.bool("to_end_arr_given")) {
            0 => &["input1"],
            1 => &["input1", "input2"],
            _ => &["input1", "input2", "input3"],
        }
    }),
    attrs: &[
        AttrDef::new("to_begin_arr_given", AttrKind::Bool, "False", "Whether an array comes before."),
        AttrDef::new("to_end_arr_given", AttrKind::Bool, "False", "Whether an array comes after."),
        AttrDef::new("to_begin_scalar", AttrKind::OptFloat, "None", "A number that comes before.").wide(),
        AttrDef::new("to_end_scalar", AttrKind::OptFloat, "None", "A number that comes after.").wide(),
    ],
    infer_shape: |shapes| {
        let attrs = shapes.attrs;
        let Some(data) = shapes.input(0) else { return Ok(()) };
        let mut total = data.size().saturating_sub(1);
        for i in 1..shapes.inputs.len() {
            let Some(array) = shapes.input(i) else { return Ok(()) };
            total = total.saturating_add(array.size());
        }
        let numbers = [("to_begin_arr_given", "to_begin_scalar"), ("to_end_arr_given", "to_end_scalar")];
        let used = numbers.iter().filter(|(array, number)| !attrs.bool(array) && attrs.opt_float(number).is_some());
        shapes.set_output(0, Shape::new(&[total.saturating_add(used.count())]))
    },
    infer_dtype: |dtypes| dtypes.uniform(&["input1", "input2", "input3"]),
    bind: |attrs, signature| {
        let given = [attrs.bool("to_begin_arr_given"), attrs.bool("to_end_arr_given")];
        let numbers = [attrs.opt_float("to_begin_scalar"), attrs.opt_float("to_end_scalar")];
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let mut arrays = call.inputs[1..].iter();
            let numbers = numbers.map(|number| number.map(T::from_f64));
            let mut end = |i: usize| match (given[i], &numbers[i]) {
                (true, _) => arrays.next().ok_or_else(wrong_arity).and_then(elements::<T>),
                (false, Some(number)) => Ok(std::slice::from_ref(number)),
                (false, None) => Ok(&[][..]),
            };
            let (before, after) = (end(0)?, end(1)?);
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            let count = x.len().saturating_sub(1);
            if out.len() != before.len() + count + after.len() {
                return Err(wrong_arity());
            }
            let (first, rest) = out.split_at_mut(before.len());
            let (differences, last) = rest.split_at_mut(count);
            first.copy_from_slice(before);
            last.copy_from_slice(after);
            if count > 0 {
                elementwise::binary(call.par, Binary::Sub, &x[1..], &x[..count], differences);
            }
            Ok(())
        })))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_number_comes_before_the_differences() {
        let y = OpTest::new("_npi_ediff1d").attr("to_begin_scalar", "9").f32([3], &[1.0, 3.0, 8.0]).run();
        assert_eq!(f32s(&y, [3]), [9.0, 2.0, 5.0]);
    }
}
