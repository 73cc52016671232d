//! The crate as Rust programs use it, in one program, which is linked to all operators once: answers
//! against recorded ones of MXNet, errors, futures, settings, generated calls and files. Files next to
//! this folder are programs of their own: their tests need the allocator or the subscriber of the
//! process, or run other programs.

#[path = "../structured/mod.rs"]
mod structured;

mod asynchronous;
mod errors;
mod features;
mod goldens;
mod npz;
mod operators;
mod settings_page;
mod structured_inputs;

use mxrt::{Model, ModelBuilder};
use std::path::{Path, PathBuf};

/// The folder of a trained model.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models").join(name)
}

/// Prefix of the files of a model.
fn prefix(name: &str) -> String {
    folder(name).join(name).to_str().expect("a path of UTF-8").to_owned()
}

/// A model that was trained on images of 8 by 8 digits.
fn digits() -> Model {
    digits_by(Model::builder())
}

fn digits_by(builder: ModelBuilder) -> Model {
    builder.load(prefix("digits_cnn"), 0).expect("the model loads")
}

/// Some image for every number.
fn image(number: usize) -> Vec<f32> {
    (0..64).map(|i| ((i * (number + 3) + number) % 17) as f32 / 16.0).collect()
}
