//! `CSVIter` as MXNet 1.9.1 behaves.

mod common;

use common::{Directory, engine, values};
use mxrt_engine::{FailureKind, OpError};
use mxrt_io::DataError;
use mxrt_io::csv::{CsvIter, CsvParams};
use mxrt_tensor::DType;

/// One row of one number per sample.
fn samples(n: usize) -> String {
    (0..n).map(|i| format!("{i}\n")).collect()
}

fn iterate(params: CsvParams) -> CsvIter {
    CsvIter::new(engine(), params).expect("an iterator")
}

/// The values and the pad of every batch of an epoch.
fn epoch(iter: &CsvIter) -> Vec<(Vec<f32>, usize)> {
    let mut batches = Vec::new();
    while let Some(batch) = iter.next().expect("a batch") {
        batches.push((values(&batch.data), batch.pad));
    }
    batches
}

fn over(directory: &Directory, rows: usize, batch_size: usize) -> CsvParams {
    let path = directory.file("data.csv", samples(rows));
    CsvParams::new(path.to_string_lossy(), [1], batch_size)
}

/// The second example of MXNet's document on exceptions.
#[test]
fn a_wrong_data_shape_is_an_error_that_can_be_caught() {
    let directory = Directory::new();
    let rows = "1,2,3,4\n2,3,4,5\n3,4,5,6\n4,5,6,7\n5,6,7,8\n6,7,8,9\n9,10,11,12\n10,11,12,13\n";
    let path = directory.file("manual_2.csv", rows);
    let iter = iterate(CsvParams::new(path.to_string_lossy(), [4, 10], 1));
    for _ in 0..2 {
        let error = iter.next().expect_err("an error").to_string();
        let expected = "manual_2.csv line 1: The data size in CSV do not match size of shape: \
                        specified shape=[4,10], the csv row-length=4";
        assert!(error.ends_with(expected), "{error}");
    }
    iter.reset().expect("a reset");
    assert!(iter.next().is_err());
}

#[test]
fn batches_have_data_labels_and_numbers() {
    let directory = Directory::new();
    let data = directory.file("data.csv", "1,2,3,4,5,6\n7,8,9,10,11,12\n");
    let labels = directory.file("label.csv", "0.5\n-1e1\n");
    let mut params = CsvParams::new(data.to_string_lossy(), [3, 2], 2);
    params.label_csv = Some(labels.to_string_lossy().into_owned());
    let batch = iterate(params).next().expect("a batch").expect("a batch");
    assert_eq!(batch.data.shape()[..], [2, 3, 2]);
    assert_eq!(values(&batch.data), [1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.]);
    assert_eq!(batch.label.shape()[..], [2]);
    assert_eq!(values(&batch.label), [0.5, -10.0]);
    assert_eq!((batch.pad, batch.index), (0, vec![0, 1]));
}

#[test]
fn labels_have_their_own_shape_and_are_0_when_not_given() {
    let directory = Directory::new();
    let mut params = over(&directory, 2, 2);
    params.label_shape = [3].into();
    let without = iterate(params.clone()).next().unwrap().unwrap().label;
    assert_eq!((without.shape()[..].to_vec(), values(&without)), (vec![2, 3], vec![0.0; 6]));
    params.label_csv = Some(directory.file("l.csv", "1,2,3\n4,5,6").to_string_lossy().into_owned());
    assert_eq!(values(&iterate(params).next().unwrap().unwrap().label), [1., 2., 3., 4., 5., 6.]);
}

#[test]
fn a_short_last_batch_is_filled_up_and_the_next_epoch_goes_on_from_there() {
    let directory = Directory::new();
    let iter = iterate(over(&directory, 5, 2));
    let first = vec![(vec![0., 1.], 0), (vec![2., 3.], 0), (vec![4., 0.], 1)];
    assert_eq!(epoch(&iter), first);
    iter.reset().unwrap();
    assert_eq!(epoch(&iter), [(vec![1., 2.], 0), (vec![3., 4.], 0)]);
    iter.reset().unwrap();
    assert_eq!(epoch(&iter), first);
}

#[test]
fn where_the_next_epoch_starts_depends_on_what_was_delivered_and_not_on_what_was_prefetched() {
    let directory = Directory::new();
    for _ in 0..50 {
        let iter = iterate(over(&directory, 5, 2));
        iter.next().unwrap();
        iter.reset().unwrap();
        assert_eq!(values(&iter.next().unwrap().unwrap().data), [0., 1.]);
        assert_eq!(epoch(&iter).last(), Some(&(vec![4., 0.], 1)));
        iter.reset().unwrap();
        iter.reset().unwrap();
        assert_eq!(values(&iter.next().unwrap().unwrap().data), [0., 1.]);
    }
}

#[test]
fn without_round_batch_the_rows_to_spare_keep_what_was_in_them() {
    let directory = Directory::new();
    let mut params = over(&directory, 5, 2);
    params.round_batch = false;
    let iter = iterate(params);
    for _ in 0..2 {
        assert_eq!(epoch(&iter), [(vec![0., 1.], 0), (vec![2., 3.], 0), (vec![4., 3.], 1)]);
        iter.reset().unwrap();
    }
}

#[test]
fn a_batch_is_filled_up_once_at_most() {
    let directory = Directory::new();
    assert_eq!(epoch(&iterate(over(&directory, 5, 7))), [(vec![0., 1., 2., 3., 4., 0., 1.], 2)]);
    assert_eq!(epoch(&iterate(over(&directory, 5, 10)))[0].1, 5);
    let error = iterate(over(&directory, 5, 11)).next().expect_err("an error").to_string();
    assert!(error.contains("number of input must be bigger than batch size"), "{error}");
}

#[test]
fn a_bad_row_is_raised_behind_the_good_batches_and_a_reset_recovers() {
    let directory = Directory::new();
    let path = directory.file("data.csv", samples(200) + "1,2\n");
    let iter = iterate(CsvParams::new(path.to_string_lossy(), [1], 2));
    for _ in 0..2 {
        for i in 0..100 {
            let batch = iter.next().expect("a batch").expect("a batch");
            assert_eq!(values(&batch.data), [2.0 * i as f32, 2.0 * i as f32 + 1.0]);
        }
        let error = iter.next().expect_err("an error").to_string();
        assert!(error.contains("data.csv line 201"), "{error}");
        iter.reset().unwrap();
    }
}

#[test]
fn cells_that_are_no_numbers_are_named() {
    let directory = Directory::new();
    for (row, what) in [("1,abc", "column 2, \"abc\""), ("1,", "row-length=1"), ("1,,2", "column 2, \"\"")] {
        let path = directory.file("data.csv", row);
        let error = iterate(CsvParams::new(path.to_string_lossy(), [2], 1)).next().expect_err("an error").to_string();
        assert!(error.contains("do not match size of shape") && error.contains(what), "{error}");
    }
}

#[test]
fn line_endings_blank_lines_spaces_and_a_byte_order_mark_do_not_matter() {
    let directory = Directory::new();
    for text in ["1, 2\r\n\r\n3,4 \r\n", "\n\n1,2\n\n3,4", "1,2\r3,4\r", "\u{feff}1,2\n3,4\n", "1,2,\n3,4,"] {
        let path = directory.file("data.csv", text);
        let iter = iterate(CsvParams::new(path.to_string_lossy(), [2], 2));
        assert_eq!(epoch(&iter), [(vec![1., 2., 3., 4.], 0)], "{text:?}");
    }
}

#[test]
fn integers_are_read_exactly() {
    let directory = Directory::new();
    let path = directory.file("data.csv", "9007199254740993,-4.0\n");
    let mut params = CsvParams::new(path.to_string_lossy(), [2], 1);
    params.dtype = Some(DType::I64);
    let batch = iterate(params.clone()).next().unwrap().unwrap();
    let guard = batch.data.read().unwrap();
    assert_eq!(guard.tensor().as_slice::<i64>().unwrap(), [9_007_199_254_740_993, -4]);
    assert_eq!(batch.label.dtype(), DType::I64);
    params.dtype = Some(DType::I32);
    let error = iterate(params.clone()).next().expect_err("an error").to_string();
    assert!(error.contains("is not a number of type int32"), "{error}");
    params.dtype = Some(DType::F64);
    let error = CsvIter::new(engine(), params).err().expect("an error");
    assert!(error.to_string().contains("float64 is not supported for CSVIter"), "{error}");
    assert_eq!(OpError::from(error).kind, FailureKind::NotImplemented);
}

#[test]
fn several_files_and_directories_are_read_one_after_the_other() {
    let directory = Directory::new();
    std::fs::create_dir(directory.path("more")).unwrap();
    let last = directory.file("last.csv", "5\n6\n");
    directory.file("more/b.csv", "3\n4\n");
    directory.file("more/a.csv", "1\n2");
    let uri = format!("{};file://{}", directory.path("more").display(), last.display());
    assert_eq!(epoch(&iterate(CsvParams::new(uri, [1], 6))), [(vec![1., 2., 3., 4., 5., 6.], 0)]);
}

#[test]
fn arguments_that_cannot_work_are_refused_at_once() {
    let directory = Directory::new();
    let refuse = |params| CsvIter::new(engine(), params).err().expect("an error");
    let missing = refuse(CsvParams::new("/no/such.csv", [1], 1));
    assert!(missing.to_string().contains("Cannot find any files that matches the URI pattern /no/such.csv"));
    assert!(matches!(refuse(CsvParams::new("s3://bucket/x.csv", [1], 1)), DataError::Unsupported(_)));
    assert!(refuse(over(&directory, 5, 0)).to_string().contains("batch_size must be a positive number"));
    assert!(matches!(
        refuse(CsvParams::new(directory.path("data.csv").to_string_lossy(), [1 << 60], 1 << 20)),
        DataError::Memory(_)
    ));
}

#[test]
fn labels_that_run_out_are_an_error() {
    let directory = Directory::new();
    let mut params = over(&directory, 3, 1);
    params.label_csv = Some(directory.file("l.csv", "1\n2\n").to_string_lossy().into_owned());
    let iter = iterate(params);
    assert!(iter.next().is_ok() && iter.next().is_ok());
    let error = iter.next().expect_err("an error").to_string();
    assert!(error.contains("no label for the row at") && error.contains("data.csv line 3"), "{error}");
}
