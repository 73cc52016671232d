//! `CSVIter` as MXNet 1.9.1 behaves.

use crate::common::{Csv, Directory, values};
use mxrt_engine::{FailureKind, OpError};
use mxrt_io::DataError;
use mxrt_io::iterators::batch::BatchIter;
use mxrt_tensor::DType;

/// One row of one number per sample.
fn samples(n: usize) -> String {
    (0..n).map(|i| format!("{i}\n")).collect()
}

/// The values and the pad of every batch of an epoch.
fn epoch(iter: &BatchIter) -> Vec<(Vec<f32>, usize)> {
    let mut batches = Vec::new();
    while let Some(batch) = iter.next().expect("a batch") {
        batches.push((values(&batch.data), batch.pad));
    }
    batches
}

fn over(directory: &Directory, rows: usize, batch_size: usize) -> Csv {
    let path = directory.file("data.csv", samples(rows));
    Csv::new(path, "1", batch_size)
}

/// The second example of MXNet's document on exceptions.
#[test]
fn a_wrong_data_shape_is_an_error_that_can_be_caught() {
    let directory = Directory::new();
    let rows = "1,2,3,4\n2,3,4,5\n3,4,5,6\n4,5,6,7\n5,6,7,8\n6,7,8,9\n9,10,11,12\n10,11,12,13\n";
    let path = directory.file("manual_2.csv", rows);
    let iter = Csv::new(path, "4,10", 1).iter();
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
    let batch = Csv::new(data, "3,2", 2)
        .with("label_csv", labels.to_string_lossy())
        .iter()
        .next()
        .expect("a batch")
        .expect("a batch");
    assert_eq!(batch.data.shape()[..], [2, 3, 2]);
    assert_eq!(values(&batch.data), [1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.]);
    assert_eq!(batch.label.shape()[..], [2]);
    assert_eq!(values(&batch.label), [0.5, -10.0]);
    assert_eq!((batch.pad, batch.index), (0, vec![0, 1]));
}

#[test]
fn labels_have_their_own_shape_and_are_0_when_not_given() {
    let directory = Directory::new();
    let params = over(&directory, 2, 2).with("label_shape", "(3,)");
    let without = params.iter().next().unwrap().unwrap().label;
    assert_eq!((without.shape()[..].to_vec(), values(&without)), (vec![2, 3], vec![0.0; 6]));
    let params = params.with("label_csv", directory.file("l.csv", "1,2,3\n4,5,6").to_string_lossy());
    assert_eq!(values(&params.iter().next().unwrap().unwrap().label), [1., 2., 3., 4., 5., 6.]);
}

#[test]
fn a_short_last_batch_is_filled_up_and_the_next_epoch_goes_on_from_there() {
    let directory = Directory::new();
    let iter = over(&directory, 5, 2).iter();
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
        let iter = over(&directory, 5, 2).iter();
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
    let iter = over(&directory, 5, 2).with("round_batch", "False").iter();
    for _ in 0..2 {
        assert_eq!(epoch(&iter), [(vec![0., 1.], 0), (vec![2., 3.], 0), (vec![4., 3.], 1)]);
        iter.reset().unwrap();
    }
}

#[test]
fn a_batch_is_filled_up_once_at_most() {
    let directory = Directory::new();
    assert_eq!(epoch(&over(&directory, 5, 7).iter()), [(vec![0., 1., 2., 3., 4., 0., 1.], 2)]);
    assert_eq!(epoch(&over(&directory, 5, 10).iter())[0].1, 5);
    let error = over(&directory, 5, 11).iter().next().expect_err("an error").to_string();
    assert!(error.contains("number of input must be bigger than batch size"), "{error}");
}

#[test]
fn a_bad_row_is_raised_behind_the_good_batches_and_a_reset_recovers() {
    let directory = Directory::new();
    let path = directory.file("data.csv", samples(200) + "1,2\n");
    let iter = Csv::new(&path, "1", 2).iter();
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
        let error = Csv::new(&path, "2", 1).iter().next().expect_err("an error").to_string();
        assert!(error.contains("do not match size of shape") && error.contains(what), "{error}");
    }
}

#[test]
fn line_endings_blank_lines_spaces_and_a_byte_order_mark_do_not_matter() {
    let directory = Directory::new();
    for text in ["1, 2\r\n\r\n3,4 \r\n", "\n\n1,2\n\n3,4", "1,2\r3,4\r", "\u{feff}1,2\n3,4\n", "1,2,\n3,4,"] {
        let path = directory.file("data.csv", text);
        let iter = Csv::new(&path, "2", 2).iter();
        assert_eq!(epoch(&iter), [(vec![1., 2., 3., 4.], 0)], "{text:?}");
    }
}

#[test]
fn integers_are_read_exactly() {
    let directory = Directory::new();
    let path = directory.file("data.csv", "9007199254740993,-4.0\n");
    let params = Csv::new(path, "2", 1);
    let batch = params.clone().with("dtype", "int64").iter().next().unwrap().unwrap();
    let guard = batch.data.read().unwrap();
    assert_eq!(guard.tensor().as_slice::<i64>().unwrap(), [9_007_199_254_740_993, -4]);
    assert_eq!(batch.label.dtype(), DType::I64);
    let error = params.clone().with("dtype", "int32").iter().next().expect_err("an error").to_string();
    assert!(error.contains("is not a number of type int32"), "{error}");
    let error = params.with("dtype", "float64").refusal();
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
    assert_eq!(epoch(&Csv::new(uri, "1", 6).iter()), [(vec![1., 2., 3., 4., 5., 6.], 0)]);
}

#[test]
fn arguments_that_cannot_work_are_refused_at_once() {
    let directory = Directory::new();
    let missing = Csv::new("/no/such.csv", "1", 1).refusal();
    assert!(missing.to_string().contains("Cannot find any files that matches the URI pattern /no/such.csv"));
    assert!(matches!(Csv::new("s3://bucket/x.csv", "1", 1).refusal(), DataError::Unsupported(_)));
    for size in [0, -1] {
        let text = over(&directory, 5, 1).with("batch_size", size.to_string()).refusal().to_string();
        assert_eq!(text, format!("batch_size must be a positive number, not {size}"));
    }
    let text = over(&directory, 5, 1).with("data_shape", "(2, 0)").refusal().to_string();
    assert_eq!(text, "CSVIter: the shape (2, 0) must consist of positive numbers");
    let text = over(&directory, 5, 1).with("data_shap", "(2,)").refusal().to_string();
    assert!(text.starts_with("Cannot find argument 'data_shap', Possible Arguments:"), "{text}");
    let text = over(&directory, 5, 1).with("num_parts", "2").with("part_index", "2").refusal().to_string();
    assert_eq!(text, "CSVIter: part_index is 2, but num_parts is 2: parts are counted from 0");
    let labels = directory.file("l.csv", "1\n");
    let labelled = over(&directory, 5, 1).with("label_csv", labels.to_string_lossy());
    let text = labelled.with("num_parts", "2").refusal().to_string();
    assert!(text.contains("num_parts cannot be used with label_csv"), "{text}");
}

#[test]
fn batches_that_no_memory_holds_are_refused() {
    let directory = Directory::new();
    for (extents, batch_size) in [("1152921504606846976", 1 << 20), ("1", 1 << 40), ("1000000000,1000", 1)] {
        let error = Csv::new(directory.file("data.csv", "1\n"), extents, batch_size).refusal();
        assert!(error.to_string().contains("a batch of"), "{error}");
        assert_eq!(OpError::from(error).kind, FailureKind::Memory);
    }
}

#[test]
fn any_number_of_batches_may_be_asked_for_ahead() {
    let directory = Directory::new();
    assert_eq!(epoch(&over(&directory, 5, 5).with("prefetch_buffer", (1_u64 << 40).to_string()).iter()).len(), 1);
}

#[test]
fn what_is_not_an_ordinary_file_is_refused_at_once() {
    let directory = Directory::new();
    let pipe = directory.path("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for path in [pipe.as_path(), "/dev/zero".as_ref()] {
        let error = Csv::new(path, "1", 1).refusal().to_string();
        assert!(error.contains("Not an ordinary file"), "{error}");
        assert!(mxrt_io::read_file(path).unwrap_err().to_string().contains("Not an ordinary file"));
    }
}

#[test]
fn a_file_without_lines_is_not_read_into_memory() {
    let directory = Directory::new();
    let path = directory.file("data.csv", "1,2\n");
    // A sparse file of a terabyte.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let iter = Csv::new(&path, "2", 1).iter();
    assert_eq!(values(&iter.next().unwrap().unwrap().data), [1.0, 2.0]);
    let error = iter.next().expect_err("an error").to_string();
    assert!(error.contains("data.csv line 2") && error.contains("is this a text file of numbers?"), "{error}");
}

#[test]
fn lines_are_counted_once_however_they_end() {
    let directory = Directory::new();
    for end in ["\n", "\r", "\r\n"] {
        let path = directory.file("data.csv", ["1", "", "3", "x"].join(end));
        let iter = Csv::new(&path, "1", 1).iter();
        assert!(iter.next().is_ok() && iter.next().is_ok());
        let error = iter.next().expect_err("an error").to_string();
        assert!(error.contains("data.csv line 4"), "{end:?}: {error}");
    }
}

#[test]
fn labels_that_run_out_are_an_error() {
    let directory = Directory::new();
    let labels = directory.file("l.csv", "1\n2\n");
    let iter = over(&directory, 3, 1).with("label_csv", labels.to_string_lossy()).iter();
    assert!(iter.next().is_ok() && iter.next().is_ok());
    let error = iter.next().expect_err("an error").to_string();
    assert!(error.contains("no label for the row at") && error.contains("data.csv line 3"), "{error}");
}

#[test]
fn rows_far_into_a_file_have_their_order_their_labels_and_their_lines() {
    let directory = Directory::new();
    // Enough text for many blocks of it; a blank line after each hundred rows.
    let row = |i: usize| match i {
        20_500 => "1,x,3\n".to_owned(),
        _ => format!("{i},{i}.5,-{i}e-1\n{}", if i % 100 == 99 { "\n" } else { "" }),
    };
    let data = directory.file("data.csv", (0..30_000).map(row).collect::<String>());
    let labels = directory.file("l.csv", samples(30_000));
    let csv = Csv::new(data, "3", 1000).with("label_csv", labels.to_string_lossy());

    let skipping = csv.clone().with("on_error", "skip").with("round_batch", "False").iter();
    for _ in 0..2 {
        let mut numbers = (0..30_000).filter(|i| *i != 20_500);
        while let Some(batch) = skipping.next().expect("a batch") {
            let (data, labels) = (values(&batch.data), values(&batch.label));
            for (row, label) in data.chunks(3).zip(labels).take(1000 - batch.pad) {
                let i = numbers.next().expect("a row of the file") as f32;
                assert_eq!((row, label), (&[i, i + 0.5, format!("-{i}e-1").parse().unwrap()][..], i));
            }
        }
        assert_eq!(numbers.next(), None);
        skipping.reset().expect("a reset");
    }
    assert_eq!(skipping.skipped(), 2);

    let raising = csv.iter();
    for _ in 0..20 {
        assert!(raising.next().is_ok());
    }
    let error = raising.next().expect_err("an error").to_string();
    assert!(error.contains("data.csv line 20706") && error.contains("(column 2, \"x\""), "{error}");
}
