//! `_scatter_*`: operators on what is stored alone, whatever the function is at 0.

use super::call::{SparseCall, copy_values, value_bytes};
use super::{Choice, SparseFamily};
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::elementwise::{self, Binary};
use mxrt_tensor::StorageType::RowSparse;
use mxrt_tensor::{StoredInput, StoredOutput, TensorType};

const NUMBER: &[AttrDef] = &[
    AttrDef::new("scalar", AttrKind::Float, "1", "The number.").wide(),
    AttrDef::new("is_int", AttrKind::Bool, "True", "Without effect: the dtype stays."),
];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_scatter_plus_scalar",
        doc: "Adds a number to what is stored; zeros of a sparse array stay.",
        attrs: NUMBER,
        bind: |attrs, signature| with_number(Binary::Add, attrs, signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_scatter_minus_scalar",
        doc: "Subtracts a number from what is stored; zeros of a sparse array stay.",
        attrs: NUMBER,
        bind: |attrs, signature| with_number(Binary::Sub, attrs, signature),
        ..OpDef::BASE
    },
    OpDef {
        name: "_scatter_elemwise_div",
        doc: "Divides what is stored of lhs by the elements of rhs; zeros of a row_sparse array stay.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        bind: |_, signature| {
            dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, |call| {
                let ([lhs, rhs], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
                elementwise::binary(call.par, Binary::Div, elements::<T>(lhs)?, elements::<T>(rhs)?, elements_mut(out)?);
                Ok(())
            })))
        },
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
];

fn with_number(function: Binary, attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let number = attrs.float("scalar");
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        let ([data], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let data = elements::<T>(data)?;
        let numbers = Scratch::filled(call.par, data.len(), T::from_f64(number));
        elementwise::binary(call.par, function, data, &numbers, elements_mut(out)?);
        Ok(())
    })))
}

pub(super) static FAMILY: SparseFamily = SparseFamily {
    names: &["_scatter_elemwise_div"],
    choose: |query| match query.stored {
        [RowSparse, _] => Choice::Kernel(RowSparse),
        _ => Choice::Warned,
    },
    run: divide,
};

fn divide(call: &SparseCall<'_>, output: &mut StoredOutput<'_>) -> Result<(), OpError> {
    let [_, divisor] = call.inputs else { return Err(wrong_arity()) };
    let lhs = call.rows(0)?;
    let mut picked = call.memory(&TensorType::new(divisor.values().dtype, lhs.values.shape.clone()))?;
    let width = value_bytes(&lhs.values);
    match divisor {
        StoredInput::RowSparse(rhs) if width > 0 => {
            // Rows that are not stored are zero.
            let mut view = picked.view_mut();
            for (to, row) in view.bytes_mut().chunks_exact_mut(width).zip(lhs.rows) {
                if let Ok(i) = rhs.rows.binary_search(row) {
                    to.copy_from_slice(&rhs.values.bytes()[i * width..(i + 1) * width]);
                }
            }
        }
        StoredInput::Csr(rhs) if width > 0 => {
            let (mut view, size) = (picked.view_mut(), rhs.values.dtype.size());
            for (to, row) in view.bytes_mut().chunks_exact_mut(width).zip(lhs.rows) {
                for i in rhs.row(*row as usize) {
                    let column = rhs.columns[i] as usize * size;
                    to[column..column + size].copy_from_slice(&rhs.values.bytes()[i * size..(i + 1) * size]);
                }
            }
        }
        StoredInput::RowSparse(_) | StoredInput::Csr(_) => {}
        StoredInput::Dense(rhs) => {
            let rows = lhs.rows.iter().map(|row| *row as usize);
            copy_values(rhs.bytes(), picked.view_mut().bytes_mut(), width, rows);
        }
    }
    call.store_like(output, call.first()?, |values| call.on_values(&[lhs.values, picked.view()], values))
}
