//! `LibSVMIter` as MXNet 1.9.1 behaves.

mod common;

use common::{Directory, engine, values};
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
