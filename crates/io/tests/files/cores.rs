//! Iterators compute with the cores of the engine, not in addition to its ops.

use crate::common::Directory;
use mxrt_engine::{Access, Config, Engine, OpSpec};
use mxrt_io::image::{Format, Pixels, encode};
use mxrt_io::iterators::IterDef;
use mxrt_io::recordio::RecordWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Takes batches while an op has the only core; whether one came before the op had ended.
fn computes_beside_an_op(iterator: &str, parameters: &[(&str, &str)]) -> bool {
    let engine = Engine::start(Config { cores: Some(1), ..Config::default() }).expect("an engine");
    let var = engine.new_var();
    let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begins, ends) = (begun.clone(), ended.clone());
    engine.push(OpSpec::new("long", &[(&var, Access::Write)]), move |_| {
        begins.store(true, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        ends.store(true, Ordering::SeqCst);
        Ok(())
    });
    while !begun.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let definition = IterDef::find(iterator).expect("a row for it");
    let batches = definition.start(engine, parameters.iter().copied()).expect("an iterator");
    batches.next().expect("no error").expect("a batch");
    !ended.load(Ordering::SeqCst)
}

#[test]
fn rows_are_parsed_when_a_core_is_free() {
    let directory = Directory::new();
    let path = directory.file("rows.csv", "1\n2\n3\n");
    let path = path.to_str().expect("a path");
    assert!(!computes_beside_an_op("CSVIter", &[("data_csv", path), ("data_shape", "(1,)"), ("batch_size", "1")]));
}

#[test]
fn images_are_decoded_when_a_core_is_free() {
    let directory = Directory::new();
    let path = directory.path("images.rec");
    let image = Pixels { height: 8, width: 8, channels: 3, values: vec![100; 192] };
    let mut record = vec![0; 24]; // a header: no flag, label 0, number 0
    record.extend(encode(&image, Format::Png { compression: 3 }).expect("a file"));
    let mut writer = RecordWriter::create(&path).expect("a file");
    writer.write(&record).and_then(|()| writer.flush()).expect("a record");
    let path = path.to_str().expect("a path");
    let parameters = [("path_imgrec", path), ("data_shape", "(3, 8, 8)"), ("batch_size", "1")];
    assert!(!computes_beside_an_op("ImageRecordIter", &parameters));
}
