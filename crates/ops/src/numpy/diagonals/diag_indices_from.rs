//! `_npi_diag_indices_from`: the indices of the main diagonal.

use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_diag_indices_from",
    doc: "The indices of the main diagonal of an array whose axes all have one length: as many \
          rows of indices as it has axes.",
    infer_shape: |shapes| {
        let Some(data) = shapes.input(0) else { return Ok(()) };
        match (data.first(), data.len()) {
            (Some(n), rank) if rank > 1 && data.iter().all(|d| d == n) => shapes.set_output(0, Shape::new(&[rank, *n])),
            _ => Err(shape_error(format!("the input has shape {data}; expected two equal axes or more"))),
        }
    },
    infer_dtype: |dtypes| dtypes.set_output(0, DType::I64),
    bind: |_, signature| {
        Ok(kernel_fn(signature, |call| {
            let n = call.outputs[0].shape.get(1).copied().unwrap_or(0).max(1);
            let out = elements_mut::<i64>(&mut call.outputs[0])?;
            out.iter_mut().enumerate().for_each(|(i, out)| *out = (i % n) as i64);
            Ok(())
        }))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn indices_are_those_of_the_diagonal() {
        let y = OpTest::new("_npi_diag_indices_from").f32([2, 2], &[0.0; 4]).run();
        assert_eq!(y.values::<i64>(), [0, 1, 0, 1]);
    }
}
