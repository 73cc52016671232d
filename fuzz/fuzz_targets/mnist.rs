//! `MNISTIter`: any bytes give batches or an error. The first byte says where the labels begin.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mxrt_fuzz::{Scratch, bounded, rows};

fuzz_target!(|bytes: &[u8]| bounded(bytes.len(), || read(bytes)));

fn read(bytes: &[u8]) {
    let [at, files @ ..] = bytes else { return };
    let (images, labels) = files.split_at(usize::from(*at).min(files.len()));
    let (images, labels) = (Scratch::new("images", images), Scratch::new("labels", labels));
    rows("MNISTIter", &[("image", images.path()), ("label", labels.path())]);
}
