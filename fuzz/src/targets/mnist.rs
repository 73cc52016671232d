//! `MNISTIter`: any bytes give batches or an error. The first byte says where the labels begin.

use crate::support::{Scratch, rows};

pub(super) fn run(bytes: &[u8]) {
    let [at, files @ ..] = bytes else { return };
    let (images, labels) = files.split_at(usize::from(*at).min(files.len()));
    let (images, labels) = (Scratch::new("images", images), Scratch::new("labels", labels));
    rows("MNISTIter", &[("image", images.path()), ("label", labels.path())]);
}
