//! Sparse arrays: any values and positions give the array that they describe, or an error. Tried
//! where programs give them, and in files, which store them as they are given.

use crate::support::{ENGINE, decisions};
use mxrt::internal::{SparseContent, StorageType};
use mxrt::params::{NpShape, Params, load_from_bytes, save_to_bytes};
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray};

/// Positions that no array has.
const HOSTILE: [i64; 6] = [-1, i64::MIN, i64::MAX, 1 << 32, 1 << 61, 6];

pub(super) fn run(bytes: &[u8]) {
    let parts = Parts::decided(&mut decisions(bytes));
    let wanted = parts.dense();
    let made = NDArray::from_parts(
        *ENGINE,
        parts.storage,
        parts.tensor(),
        &parts.value_bytes(),
        &parts.indices,
        &parts.pointers,
    );
    assert_eq!(made.is_ok(), wanted.is_some(), "{parts:?}");
    let computed = parts.computed();
    let read = computed.to_vec::<f32>();
    assert_eq!(read.ok(), wanted, "{parts:?}");
    if let (Ok(array), Some(wanted)) = (made, &wanted) {
        assert_eq!(array.to_vec::<f32>().expect("a value"), *wanted, "{parts:?}");
        let saved = save_to_bytes(&Params::List(vec![array]), NpShape::Off, &mut || true).expect("saved");
        assert_eq!(saved, parts.file(), "{parts:?}");
    }
    match (load_from_bytes(*ENGINE, &parts.file(), NpShape::Off), wanted) {
        (Ok(Params::List(arrays)), Some(wanted)) => {
            assert_eq!(arrays[0].to_vec::<f32>().expect("a value"), wanted, "{parts:?}");
        }
        // Columns of a row are sorted, and values without positions left out.
        (Ok(Params::List(arrays)), None) => drop(arrays[0].to_vec::<f32>().expect("a value")),
        (Ok(Params::Named(_)), _) => panic!("the file has no names"),
        (Err(_), wanted) => assert_eq!(wanted, None, "{parts:?}"),
    }
}

/// Values and positions, right or wrong.
#[derive(Debug)]
struct Parts {
    storage: StorageType,
    shape: [usize; 2],
    values: Vec<f32>,
    indices: Vec<i64>,
    /// row pointers of a csr matrix
    pointers: Vec<i64>,
}

impl Parts {
    fn decided(decide: &mut dyn FnMut(usize) -> usize) -> Parts {
        let storage = [StorageType::Csr, StorageType::RowSparse][decide(2)];
        let shape = [1 + decide(4), 1 + decide(5)];
        let count = decide(6);
        let mut number = |bound: usize| match decide(16) {
            0 => HOSTILE[decide(HOSTILE.len())],
            _ => decide(bound) as i64,
        };
        let mut indices: Vec<i64> = (0..count).map(|_| number(5)).collect();
        let mut pointers: Vec<i64> = match storage {
            StorageType::Csr => (0..=shape[0]).map(|_| number(count + 1)).collect(),
            _ => Vec::new(),
        };
        // Random numbers are seldom in order.
        if decide(4) > 0 {
            pointers.sort_unstable();
            if let [first, .., last] = &mut pointers[..] {
                (*first, *last) = (0, count as i64);
            }
        }
        if decide(4) > 0 {
            indices.sort_unstable();
        }
        if decide(16) == 0 {
            pointers.pop();
        }
        let width = if storage == StorageType::Csr { 1 } else { shape[1] };
        let values = if decide(16) == 0 { count * width + 1 } else { count * width };
        Parts { storage, shape, values: (1..=values).map(|n| n as f32).collect(), indices, pointers }
    }

    fn tensor(&self) -> TensorType {
        TensorType::new(DType::F32, self.shape)
    }

    fn value_bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// The array that they describe; none if they describe none.
    fn dense(&self) -> Option<Vec<f32>> {
        let [rows, columns] = self.shape;
        let mut dense = vec![0.0; rows * columns];
        let rising = |numbers: &[i64], extent: usize| {
            numbers.iter().all(|n| (0..extent as i64).contains(n)) && numbers.windows(2).all(|pair| pair[0] < pair[1])
        };
        if self.storage == StorageType::RowSparse {
            let fits = self.values.len() == self.indices.len() * columns && rising(&self.indices, rows);
            for (row, values) in self.indices.iter().zip(self.values.chunks(columns)).filter(|_| fits) {
                dense[*row as usize * columns..][..columns].copy_from_slice(values);
            }
            return fits.then_some(dense);
        }
        let counts = self.pointers.len() == rows + 1
            && self.values.len() == self.indices.len()
            && self.pointers.first() == Some(&0)
            && self.pointers.last() == Some(&(self.indices.len() as i64))
            && self.pointers.is_sorted();
        if !counts {
            return None;
        }
        for (row, ends) in self.pointers.windows(2).enumerate() {
            let stored = ends[0] as usize..ends[1] as usize;
            if !rising(&self.indices[stored.clone()], columns) {
                return None;
            }
            for i in stored {
                dense[row * columns + self.indices[i] as usize] = self.values[i];
            }
        }
        Some(dense)
    }

    /// An array whose content is made by an operation, as those of Python and C are.
    fn computed(&self) -> NDArray {
        let array = NDArray::new_stored(*ENGINE, Context::cpu(0), self.tensor(), self.storage).expect("an array");
        let (values, indices, pointers) = (self.value_bytes(), self.indices.clone(), self.pointers.clone());
        let make = move |engine, storage, tensor: &TensorType| {
            SparseContent::new(engine, storage, tensor, &values, &indices, &pointers)
        };
        array.fill_stored("fuzz", make).expect("it is pushed");
        array
    }

    /// A file with this array, as MXNet writes one.
    fn file(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let shape = |file: &mut Vec<u8>, extents: &[usize]| {
            file.extend((extents.len() as u32).to_le_bytes());
            extents.iter().for_each(|extent| file.extend((*extent as i64).to_le_bytes()));
        };
        [0x112_u64, 0, 1].into_iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(0xf993_fac9_u32.to_le_bytes());
        file.extend(self.storage.code().to_le_bytes());
        match self.storage {
            StorageType::RowSparse => shape(&mut file, &[self.values.len() / self.shape[1], self.shape[1]]),
            _ => shape(&mut file, &[self.values.len()]),
        }
        shape(&mut file, &self.shape);
        // The processor, its number, and float32.
        [1_i32, 0, 0].into_iter().for_each(|word| file.extend(word.to_le_bytes()));
        let positions: &[&[i64]] = match self.storage {
            StorageType::RowSparse => &[&self.indices],
            _ => &[&self.pointers, &self.indices],
        };
        for numbers in positions {
            file.extend(DType::I64.code().to_le_bytes());
            shape(&mut file, &[numbers.len()]);
        }
        let whole = match self.storage {
            StorageType::RowSparse => self.values.len() / self.shape[1] * self.shape[1],
            _ => self.values.len(),
        };
        file.extend(self.values[..whole].iter().flat_map(|value| value.to_le_bytes()));
        file.extend(positions.iter().flat_map(|numbers| numbers.iter()).flat_map(|number| number.to_le_bytes()));
        file.extend(0_u64.to_le_bytes());
        file
    }
}
