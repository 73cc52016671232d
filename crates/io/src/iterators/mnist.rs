//! `MNISTIter`: images and labels of handwritten digits as batches.

use super::batch::{SampleError, Samples};
use super::{IterDef, Source, dtype, part};
use crate::{DataError, read_file};
use mxrt_engine::Engine;
use mxrt_kernels::random::permutation;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use mxrt_tensor::{DType, Shape};
use std::sync::Arc;

const NAME: &str = "MNISTIter";

pub(super) static MNIST_ITER: IterDef = IterDef {
    name: NAME,
    doc: "Batches of the images of MNIST, read from its two files, unpacked. Values are pixels / 256. Samples at the \
          end that do not fill a batch are left out.",
    parameters: &[&[
        AttrDef::new("image", AttrKind::Str, "./train-images-idx3-ubyte", "The file of images."),
        AttrDef::new("label", AttrKind::Str, "./train-labels-idx1-ubyte", "The file of labels."),
        AttrDef::new("batch_size", AttrKind::Int, "128", "Samples in a batch."),
        AttrDef::new(
            "shuffle",
            AttrKind::Bool,
            "True",
            "Put the samples into an order by chance, the same in every epoch.",
        ),
        AttrDef::new("flat", AttrKind::Bool, "False", "Give images as rows of pixels."),
        AttrDef::new("seed", AttrKind::Int, "0", "Seed of that order."),
        AttrDef::new("silent", AttrKind::Bool, "False", "Accepted and ignored: nothing is printed."),
    ]],
    omits: &["round_batch"],
    source,
};

fn source(parameters: &Attrs) -> Result<Source, DataError> {
    let dtype = dtype(NAME, parameters, &[DType::F32])?;
    let (images_path, labels_path) = (parameters.str("image"), parameters.str("label"));
    let images = IdxFile::<3>::read(images_path)?;
    let labels = IdxFile::<1>::read(labels_path)?;
    let [count, rows, columns] = images.extents;
    if labels.extents[0] != count {
        return Err(DataError::Content {
            place: labels_path.to_owned(),
            problem: format!("it has {} labels, but {images_path} has {count} images", labels.extents[0]),
        });
    }
    let (parts, part) = part(parameters);
    // As MXNet divides: ends are rounded down.
    let bound = |part: u64| (count as f64 / parts as f64 * part as f64) as usize;
    let (first, end) = (bound(part), if part + 1 == parts { count } else { bound(part + 1) });
    let mut order: Vec<usize> = (0..end - first).collect();
    if parameters.bool("shuffle") {
        permutation(parameters.int("seed") as u64, 0, &mut order);
    }
    let digits = Digits {
        images: images.content.get(first * rows * columns..end * rows * columns).unwrap_or_default().into(),
        labels: labels.content.get(first..end).unwrap_or_default().into(),
        order: order.into(),
        next: 0,
    };
    let data_shape = match parameters.bool("flat") {
        true => Shape::new(&[rows * columns]),
        false => Shape::new(&[1, rows, columns]),
    };
    let open = move |_: &'static Engine| Ok(Box::new(digits.clone()) as Box<dyn Samples>);
    Ok(Source { dtype, label_dtype: dtype, data_shape, label_shape: Shape::new(&[1]), open: Box::new(open) })
}

/// The images and labels, in memory.
#[derive(Clone)]
struct Digits {
    images: Arc<[u8]>,
    labels: Arc<[u8]>,
    order: Arc<[usize]>,
    next: usize,
}

impl Samples for Digits {
    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, SampleError> {
        let Some(number) = self.order.get(self.next).copied() else { return Ok(None) };
        self.next += 1;
        let (values, _) = data.as_chunks_mut::<4>();
        let pixels = &self.images[number * values.len()..][..values.len()];
        for (value, pixel) in values.iter_mut().zip(pixels) {
            *value = (f32::from(*pixel) * (1.0 / 256.0)).to_ne_bytes();
        }
        label.copy_from_slice(&f32::from(self.labels[number]).to_ne_bytes());
        Ok(Some(number as u64))
    }

    fn rewind(&mut self, _pass: u64) -> Result<(), DataError> {
        self.next = 0;
        Ok(())
    }
}

/// A file of bytes with `N` axes, as MNIST has them.
struct IdxFile<const N: usize> {
    extents: [usize; N],
    content: Vec<u8>,
}

impl<const N: usize> IdxFile<N> {
    fn read(path: &str) -> Result<IdxFile<N>, DataError> {
        let content = read_file(path)?;
        IdxFile::parse(content).map_err(|problem| DataError::Content { place: path.to_owned(), problem })
    }

    fn parse(mut content: Vec<u8>) -> Result<IdxFile<N>, String> {
        let head = 4 + 4 * N;
        if content.starts_with(&[0x1f, 0x8b]) {
            return Err("invalid mnist format: it is packed by gzip; unpack it first".to_owned());
        }
        let words: Vec<u32> =
            content.as_chunks::<4>().0.iter().take(1 + N).map(|word| u32::from_be_bytes(*word)).collect();
        let magic = 0x0800 | N as u32;
        if words.first() != Some(&magic) || words.len() != 1 + N {
            let shown = &content[..content.len().min(4)];
            return Err(format!(
                "invalid mnist format: it begins with {shown:02x?}, but should with {:02x?} and {N} extents",
                magic.to_be_bytes()
            ));
        }
        let mut extents = [0; N];
        extents.iter_mut().zip(&words[1..]).for_each(|(extent, word)| *extent = *word as usize);
        let count = extents.iter().try_fold(1_usize, |count, extent| count.checked_mul(*extent));
        let needed = count.and_then(|count| count.checked_add(head));
        if needed.is_none_or(|needed| content.len() < needed) {
            return Err(format!(
                "the file is truncated: extents {extents:?} need {} bytes, but there are {}",
                needed.map_or("too many".to_owned(), |needed| needed.to_string()),
                content.len()
            ));
        }
        // Without an image nothing in the file bounds what one would need.
        if extents[0] == 0 {
            return Err("invalid mnist format: the count of its first extent is 0".to_owned());
        }
        if extents[1..].contains(&0) {
            return Err(format!("invalid mnist format: images of extents {:?} have no pixels", &extents[1..]));
        }
        content.drain(..head);
        Ok(IdxFile { extents, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Images without a count would ask for batches of any size: here 2^64 bytes each.
    #[test]
    fn extents_of_images_that_are_not_there_are_refused() {
        let file = |extents: [u32; 3]| [0x0803].iter().chain(&extents).flat_map(|word| word.to_be_bytes()).collect();
        let error = |extents| IdxFile::<3>::parse(file(extents)).err().unwrap_or_default();
        assert!(error([0, u32::MAX, u32::MAX]).contains("first extent is 0"));
        assert!(error([1, 2, 2]).contains("truncated"));
        let two: Vec<u8> = file([2, 1, 1]).into_iter().chain([5, 6]).collect();
        assert_eq!(IdxFile::<3>::parse(two).map(|read| read.content), Ok(vec![5, 6]));
    }
}
