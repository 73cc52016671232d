//! CSV files: any bytes give batches or an error, and the next epoch the same.
//!
//! The first four bytes say what a sample is and how many are in a batch.

use crate::support::Scratch;
use mxrt::internal::io::iterators::IterDef;
use mxrt::internal::{Config, Engine};
use std::sync::LazyLock;

static ENGINE: LazyLock<&'static Engine> = LazyLock::new(|| {
    let engine = Engine::start(Config { cores: Some(1), ..Config::default() }).expect("an engine");
    engine.memory().set_limit(Some(64 << 20));
    engine
});

/// The bytes of all batches of an epoch, or the error that ends it.
fn epoch(batches: &mxrt::internal::io::iterators::batch::BatchIter) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    while all.len() < 64 {
        match batches.next() {
            Ok(Some(batch)) => all.push(batch.data.to_bytes().expect("a batch has a value")),
            Ok(None) => return Ok(all),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(all)
}

pub(super) fn run(bytes: &[u8]) {
    let Some((&[width, height, batch, how], content)) = bytes.split_first_chunk::<4>() else { return };
    let file = Scratch::new("csv", content);
    let path = file.path();
    let shape = format!("({},{})", width % 5 + 1, height % 4 + 1);
    let shape = if how & 4 == 0 { format!("({},)", width % 5 + 1) } else { shape };
    let rows = (batch % 7 + 1).to_string();
    let dtype = ["float32", "int32", "int64", "None"][usize::from(how >> 6)];
    let round = if how & 1 == 0 { "True" } else { "False" };
    let mut given = vec![
        ("data_csv", path),
        ("data_shape", shape.as_str()),
        ("batch_size", rows.as_str()),
        ("dtype", dtype),
        ("round_batch", round),
        ("prefetch_buffer", "1"),
    ];
    if how & 2 != 0 {
        given.extend([("label_csv", path), ("label_shape", shape.as_str())]);
    }
    let definition = IterDef::find("CSVIter").expect("there is one");
    let Ok(batches) = definition.start(*ENGINE, given) else { return };
    let first = epoch(&batches);
    if batches.reset().is_ok() && first.is_ok() && round == "False" {
        assert_eq!(epoch(&batches), first, "another epoch has the same batches");
    }
}
