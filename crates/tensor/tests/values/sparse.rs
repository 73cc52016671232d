//! Sparse arrays without operators: their one variable, checks of positions, and dense copies.

use mxrt_engine::{Config, Cost, Engine, FailureKind, OpError};
use mxrt_tensor::{
    Context, DType, Launch, NDArray, SparseContent, StorageType, StoredInput, StoredOutput, TensorType, launch,
    launch_stored,
};
use std::sync::{OnceLock, mpsc};

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<&'static Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start(Config { cores: Some(2), ..Config::default() }).expect("an engine"))
}

fn empty(storage: StorageType, shape: &[usize]) -> NDArray {
    NDArray::new_stored(engine(), Context::cpu(0), TensorType::new(DType::F32, shape), storage).expect("an array")
}

/// Pushes the making of an array.
fn fill(array: &NDArray, values: &[f32], indices: &[i64], pointers: &[i64]) {
    let (values, indices, pointers) = (values.to_vec(), indices.to_vec(), pointers.to_vec());
    let outputs = [array];
    let work = Launch { name: "fill".into(), inputs: &[], outputs: &outputs, cost: Cost::Large };
    launch_stored(engine(), work, move |ctx, _, outputs| {
        let Some(StoredOutput::Sparse { storage, tensor, made }) = outputs.first_mut() else {
            return Err(OpError::new(FailureKind::Operator, "no sparse output"));
        };
        let bytes = bytemuck::cast_slice(&values);
        *made = Some(SparseContent::new(ctx.engine(), *storage, tensor, bytes, &indices, &pointers)?);
        Ok(())
    });
}

fn csr(shape: &[usize], values: &[f32], indices: &[i64], pointers: &[i64]) -> NDArray {
    let array = empty(StorageType::Csr, shape);
    fill(&array, values, indices, pointers);
    array
}

fn failure(array: &NDArray) -> String {
    array.to_vec::<f32>().expect_err("a failure").message.clone()
}

#[test]
fn a_csr_matrix_is_read_as_stored_and_as_a_dense_copy() {
    let matrix = csr(&[2, 3], &[5.0, 6.0, 7.0], &[0, 2, 1], &[0, 2, 3]);
    let guard = matrix.read_stored(None).expect("a value");
    let Ok(StoredInput::Csr(stored)) = guard.content() else { panic!("not csr") };
    assert_eq!(stored.values.as_slice::<f32>().expect("floats"), [5.0, 6.0, 7.0]);
    assert_eq!((stored.columns, stored.pointers), (&[0, 2, 1][..], &[0, 2, 3][..]));
    drop(guard);
    assert_eq!(matrix.to_vec::<f32>().expect("values"), [5.0, 0.0, 6.0, 0.0, 7.0, 0.0]);
}

#[test]
fn a_row_sparse_array_is_read_as_stored_and_as_a_dense_copy() {
    let array = empty(StorageType::RowSparse, &[3, 2]);
    assert_eq!(array.to_vec::<f32>().expect("zeros"), [0.0; 6]);
    fill(&array, &[1.0, 2.0], &[2], &[]);
    // The dense copy of the old content is not read again.
    assert_eq!(array.to_vec::<f32>().expect("values"), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn operations_that_know_dense_arrays_alone_read_a_copy_in_the_order_of_pushes() {
    let array = empty(StorageType::RowSparse, &[2, 1]);
    let sums: Vec<NDArray> = (0..20)
        .map(|i| {
            fill(&array, &[i as f32], &[i % 2], &[]);
            let copy = NDArray::new(engine(), Context::cpu(0), array.tensor_type()).expect("an array");
            let (inputs, outputs) = ([&array], [&copy]);
            let work = Launch { name: "copy".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Large };
            launch(engine(), work, |_, ins, outs| {
                outs[0].bytes_mut().copy_from_slice(ins[0].bytes());
                Ok(())
            });
            copy
        })
        .collect();
    for (i, copy) in sums.iter().enumerate() {
        let mut expected = [0.0; 2];
        expected[i % 2] = i as f32;
        assert_eq!(copy.to_vec::<f32>().expect("values"), expected, "{i}");
    }
}

#[test]
fn a_failure_of_a_part_is_one_of_the_array_until_it_is_overwritten() {
    let matrix = csr(&[1, 2], &[1.0], &[2], &[0, 1]);
    assert!(failure(&matrix).contains("column 2 at position 0 is outside"), "{}", failure(&matrix));
    assert!(matrix.read_stored(None).is_err());
    fill(&matrix, &[1.0], &[1], &[0, 1]);
    assert_eq!(matrix.to_vec::<f32>().expect("values"), [0.0, 1.0]);
}

#[test]
fn damaged_positions_are_refused() {
    for (indices, pointers, words) in [
        (&[0, 3][..], &[0, 1, 2][..], "column 3 at position 0 is outside"),
        (&[0, -1], &[0, 1, 2], "column -1 at position 0 is outside"),
        (&[0, i64::MAX], &[0, 1, 2], "is outside of the array"),
        (&[1, 0], &[0, 2, 2], "comes after 1"),
        (&[1, 1], &[0, 2, 2], "comes after 1"),
        (&[0, 1], &[0, 1], "2 row pointers for 2 rows"),
        (&[0, 1], &[1, 1, 2], "the first row pointer is 1"),
        (&[0, 1], &[0, 2, 1], "must not fall"),
        (&[0, 1], &[0, 1, 3], "the last row pointer is 3"),
        (&[0, 1], &[0, i64::MIN, 2], "must not fall"),
        (&[0], &[0, 1, 1], "values of float32 for 1 positions"),
    ] {
        let error = failure(&csr(&[2, 3], &[1.0, 2.0], indices, pointers));
        assert!(error.contains(words), "{indices:?} {pointers:?}: {error}");
    }
    for rows in [&[0, 4][..], &[2, 1], &[1, 1], &[-1, 0]] {
        let array = empty(StorageType::RowSparse, &[4, 1]);
        fill(&array, &[1.0, 2.0], rows, &[]);
        assert!(failure(&array).starts_with("row_sparse: row"), "{rows:?}: {}", failure(&array));
    }
}

#[test]
fn a_result_may_take_the_place_of_what_it_is_computed_from() {
    let array = empty(StorageType::RowSparse, &[3, 1]);
    fill(&array, &[4.0], &[1], &[]);
    let (inputs, outputs) = ([&array], [&array]);
    let work = Launch { name: "move".into(), inputs: &inputs, outputs: &outputs, cost: Cost::Large };
    launch_stored(engine(), work, |ctx, inputs, outputs| {
        let (Some(StoredInput::RowSparse(old)), Some(StoredOutput::Sparse { storage, tensor, made })) =
            (inputs.first(), outputs.first_mut())
        else {
            return Err(OpError::new(FailureKind::Operator, "not row_sparse"));
        };
        let rows: Vec<i64> = old.rows.iter().map(|row| row + 1).collect();
        *made = Some(SparseContent::new(ctx.engine(), *storage, tensor, old.values.bytes(), &rows, &[])?);
        Ok(())
    });
    assert_eq!(array.to_vec::<f32>().expect("values"), [0.0, 0.0, 4.0]);
}

#[test]
fn writing_a_sparse_array_as_a_dense_one_is_an_error_that_keeps_its_value() {
    let matrix = csr(&[1, 2], &[1.0], &[1], &[0, 1]);
    matrix.wait_to_read().expect("a value");
    let error = matrix.fill_with(&[0; 8]).expect_err("an error");
    assert!(error.message.contains("stored as csr") && error.message.contains("tostype('csr')"), "{}", error.message);
    assert_eq!(matrix.to_vec::<f32>().expect("values"), [0.0, 1.0]);
    assert!(matrix.view(0, [2].into()).is_none() && matrix.view(0, [1, 2].into()).is_some());
}

#[test]
fn readers_keep_a_content_until_they_are_done() {
    let array = empty(StorageType::RowSparse, &[1, 1]);
    fill(&array, &[1.0], &[0], &[]);
    let guard = array.read_stored(None).expect("a value");
    fill(&array, &[2.0], &[0], &[]);
    let (sender, receiver) = mpsc::channel();
    let later = array.clone();
    let reader = std::thread::spawn(move || sender.send(later.to_vec::<f32>().expect("values")));
    let value = guard.content().expect("content").values().as_slice::<f32>().expect("floats")[0];
    assert!(receiver.try_recv().is_err(), "the write did not wait for the guard");
    drop(guard);
    assert_eq!((value, receiver.recv().expect("a value")), (1.0, vec![2.0]));
    reader.join().expect("a thread").expect("sent");
}

#[test]
fn shapes_and_devices_that_a_storage_cannot_have_are_errors() {
    let make = |storage, shape: &[usize]| {
        NDArray::new_stored(engine(), Context::cpu(0), TensorType::new(DType::F32, shape), storage).map(drop)
    };
    assert_eq!(make(StorageType::Csr, &[3]).expect_err("an error").kind, FailureKind::Shape);
    assert_eq!(make(StorageType::RowSparse, &[]).expect_err("an error").kind, FailureKind::Shape);
    assert_eq!(make(StorageType::Csr, &[usize::MAX, 2]).expect_err("an error").kind, FailureKind::Memory);
}

#[test]
fn a_matrix_of_a_terabyte_takes_the_memory_of_what_it_stores() {
    let before = engine().memory().stats().in_use;
    let matrix = csr(&[2, 1 << 37], &[3.0], &[1 << 36], &[0, 1, 1]);
    let guard = matrix.read_stored(None).expect("a value");
    assert_eq!(guard.parts().expect("content").map(SparseContent::stored), Some(1));
    // Other tests of the file run concurrently: they use less than this.
    assert!(engine().memory().stats().in_use < before + (1 << 20));
}
