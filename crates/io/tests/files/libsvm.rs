//! `LibSVMIter` as MXNet 1.9.1 behaves.

use crate::common::{Directory, engine, values};
use mxrt_io::iterators::IterDef;

#[test]
fn lines_that_are_only_a_comment_are_left_out() {
    let directory = Directory::new();
    let text = "\u{feff}# a file of two rows\n1 0:2\n  # between them\n0 1:3 # after numbers\n#";
    let path = directory.file("rows.libsvm", text);
    let definition = IterDef::find("LibSVMIter").expect("a row for it");
    let path = path.to_string_lossy();
    for dense in ["True", "False"] {
        let given = [("data_libsvm", &*path), ("data_shape", "(2,)"), ("batch_size", "2"), ("dense", dense)];
        let iter = definition.start(engine(), given).expect("an iterator");
        let batch = iter.next().expect("a batch").expect("a batch");
        assert_eq!(values(&batch.data), [2.0, 0.0, 0.0, 3.0]);
        assert_eq!(values(&batch.label), [1.0, 0.0]);
        assert!(iter.next().expect("an end").is_none());
    }
}

/// Reads the rows of a file with this text, of four numbers each, in both forms: values and labels.
fn read(text: &str, rows: &str) -> Result<(Vec<f32>, Vec<f32>), String> {
    let directory = Directory::new();
    let path = directory.file("rows.libsvm", text);
    let definition = IterDef::find("LibSVMIter").expect("a row for it");
    let path = path.to_string_lossy();
    let forms = ["True", "False"].map(|dense| {
        let given = [("data_libsvm", &*path), ("data_shape", "(4,)"), ("batch_size", rows), ("dense", dense)];
        let batch = definition.start(engine(), given).expect("an iterator").next();
        let batch = batch.map_err(|e| e.to_string())?.expect("a batch");
        Ok((values(&batch.data), values(&batch.label)))
    });
    let [dense, stored] = forms;
    assert_eq!(dense, stored);
    dense
}

#[test]
fn blanks_may_be_around_a_colon() {
    let text = "1 0: 7\n2 : 0.5 1 :8 2 \t: 9\n3 qid: 4 3:5\n4 1 2";
    let (data, labels) = read(text, "4").expect("four rows");
    assert_eq!(data, [7., 0., 0., 0., 0., 8., 9., 0., 0., 0., 0., 5., 0., 1., 1., 0.]);
    assert_eq!(labels, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_colon_without_its_numbers_is_named() {
    for (text, named) in [("1 2:\n", "\"2:\""), ("1 2 :\n", "\"2 :\""), ("1 0:1 :3", "\":3\"")] {
        let error = read(text, "1").expect_err("an error");
        assert!(error.contains(named), "{text:?}: {error}");
    }
}
