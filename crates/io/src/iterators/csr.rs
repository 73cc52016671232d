//! Batches that are csr matrices.

use mxrt_engine::{Engine, OpError};
use mxrt_tensor::{NDArray, StorageType, TensorType};

/// Stored numbers of a row, by rising columns.
#[derive(Clone, Debug, Default)]
pub struct StoredRow {
    columns: Vec<i64>,
    values: Vec<f32>,
}

impl StoredRow {
    /// Forgets all numbers.
    pub(super) fn clear(&mut self) {
        self.columns.clear();
        self.values.clear();
    }

    /// Stores a number of a column after those before. False if there is no memory.
    pub(super) fn push(&mut self, column: usize, value: f32) -> bool {
        let room = self.columns.try_reserve(1).is_ok() && self.values.try_reserve(1).is_ok();
        if room {
            self.columns.push(column as i64);
            self.values.push(value);
        }
        room
    }
}

/// Joins rows to a csr matrix of this type. Takes memory for what is stored alone.
pub(super) fn join(engine: &'static Engine, tensor: &TensorType, rows: &[StoredRow]) -> Result<NDArray, OpError> {
    let (mut values, mut columns, mut pointers) = (Vec::new(), Vec::new(), vec![0]);
    for row in rows {
        values.extend(row.values.iter().flat_map(|value| value.to_ne_bytes()));
        columns.extend_from_slice(&row.columns);
        pointers.push(columns.len() as i64);
    }
    NDArray::from_parts(engine, StorageType::Csr, tensor.clone(), &values, &columns, &pointers)
}
