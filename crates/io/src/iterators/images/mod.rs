//! `ImageRecordIter` and related iterators: images of a RecordIO file as batches.
//!
//! Records are read in order by one worker at a time, and decoded and changed side by side. What
//! happens to an image by chance follows from the seed, the pass over the records and the record's
//! number there, so batches do not depend on the number of threads.

mod augment;
mod boxes;
mod color;
pub(super) mod detection;
mod labels;
mod normalize;
mod recolour;
mod records;
mod warp;

use super::batch::{SampleError, Samples};
use super::prefetch::Prefetcher;
use super::{IterDef, Source, dtype, extents, part};
use crate::DataError;
use crate::image::{Channels, decode};
use augment::{Augment, Random};
use labels::{ImageRecord, LabelList};
use mxrt_engine::Engine;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use mxrt_tensor::{DType, Shape};
use normalize::Normalize;
use records::{PackedRecord, RecordOrder, Records};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DOC: &str = "Batches of the images of a RecordIO file, decoded and changed in the background.";

/// Parameters of the file and of reading it.
const READING: &[AttrDef] = &[
    AttrDef::new(
        "path_imglist",
        AttrKind::Str,
        "",
        "A list of labels by the numbers of images, in place of those in the file of records.",
    ),
    AttrDef::new("path_imgrec", AttrKind::Str, "", "The file of records."),
    AttrDef::new("path_imgidx", AttrKind::Str, "", "Its index: with it parts have equally many records."),
    AttrDef::new("aug_seq", AttrKind::Enum(&["aug_default"]), "aug_default", "The augmenter; there is one."),
    AttrDef::new("label_width", AttrKind::IntFrom(1), "1", "Labels of an image."),
    AttrDef::required("data_shape", AttrKind::Shape, "Channels (1, 3 or 4), height and width of an image."),
    AttrDef::new(
        "preprocess_threads",
        AttrKind::IntFrom(1),
        "4",
        "Threads that decode, at most as many as the engine has cores, which they share with operators.",
    ),
    AttrDef::new("verbose", AttrKind::Bool, "True", "Accepted and ignored: nothing is printed."),
    AttrDef::new("device_id", AttrKind::Int, "0", "Accepted and ignored: batches are made in memory of the host."),
    AttrDef::new("shuffle_chunk_size", AttrKind::Int, "0", "Accepted and ignored: the whole part is shuffled.")
        .wide()
        .unsigned(),
    AttrDef::new("shuffle_chunk_seed", AttrKind::Int, "0", "Accepted and ignored, as shuffle_chunk_size."),
    AttrDef::new("seed_aug", AttrKind::OptInt, "None", "Seed of changes by chance; None is `seed`."),
    AttrDef::new("shuffle", AttrKind::Bool, "False", "Read the records in another order in each epoch, by chance."),
    AttrDef::new("seed", AttrKind::Int, "0", "Seed of these orders."),
];

pub(super) static IMAGE_RECORD_ITER: IterDef = IterDef {
    name: "ImageRecordIter",
    doc: DOC,
    parameters: &[READING, augment::PARAMETERS, normalize::PARAMETERS],
    omits: &[],
    source: |parameters| source("ImageRecordIter", parameters, normalize::DTYPES),
};

pub(super) static IMAGE_RECORD_ITER_V1: IterDef = IterDef {
    name: "ImageRecordIter_v1",
    doc: DOC,
    parameters: IMAGE_RECORD_ITER.parameters,
    omits: &[],
    source: |parameters| source("ImageRecordIter_v1", parameters, &[DType::F32]),
};

pub(super) static IMAGE_RECORD_UINT8_ITER: IterDef = IterDef {
    name: "ImageRecordUInt8Iter",
    doc: "As ImageRecordIter, with batches of uint8.",
    parameters: &[READING, augment::PARAMETERS],
    omits: &[],
    source: |parameters| source("ImageRecordUInt8Iter", parameters, &[DType::U8]),
};

pub(super) static IMAGE_RECORD_UINT8_ITER_V1: IterDef = IterDef {
    name: "ImageRecordUInt8Iter_v1",
    doc: "As ImageRecordIter, with batches of uint8.",
    parameters: IMAGE_RECORD_UINT8_ITER.parameters,
    omits: &[],
    source: |parameters| source("ImageRecordUInt8Iter_v1", parameters, &[DType::U8]),
};

pub(super) static IMAGE_RECORD_INT8_ITER: IterDef = IterDef {
    name: "ImageRecordInt8Iter",
    doc: "As ImageRecordIter, with batches of int8.",
    parameters: IMAGE_RECORD_UINT8_ITER.parameters,
    omits: &[],
    source: |parameters| source("ImageRecordInt8Iter", parameters, &[DType::I8]),
};

fn source(name: &'static str, parameters: &Attrs, dtypes: &[DType]) -> Result<Source, DataError> {
    let dtype = dtype(name, parameters, dtypes)?;
    let shape = image_shape(name, parameters)?;
    let order = record_order(name, parameters)?;
    let width = parameters.count("label_width");
    let list = label_list(parameters, Some(width))?;
    let augment = Augment::new(name, parameters, shape)?;
    let seed = parameters.opt_int("seed_aug").unwrap_or(parameters.int("seed")) as u64;
    // Files and parameters that cannot work are reported now.
    Records::open(&order, Arc::default())?;
    let parameters = parameters.clone();
    let (data_shape, label_shape) = (Shape::new(&shape), Shape::new(&[width]));
    let kind = Arc::new(Images { list, width, augment, channels: channels_of(shape), seed });
    let open = move |engine: &'static Engine| {
        let normalize = Normalize::new(name, &parameters, dtype, shape, engine)?;
        let kind = kind.clone();
        let bytes = shape.iter().product::<usize>() * dtype.size();
        let make = move |record: PackedRecord| kind.sample(&record, &normalize, [shape[1], shape[2]], bytes);
        let samples = ImageSamples::start(engine, parameters.count("preprocess_threads"), &order, make)?;
        Ok(Box::new(samples) as Box<dyn Samples>)
    };
    Ok(Source { dtype, label_dtype: DType::F32, data_shape, label_shape, open: Box::new(open) })
}

/// Channels, height and width.
fn image_shape(name: &str, parameters: &Attrs) -> Result<[usize; 3], DataError> {
    let given = extents(name, parameters, "data_shape")?;
    match given[..] {
        [channels @ (1 | 3 | 4), height, width] => Ok([channels, height, width]),
        _ => Err(DataError::Argument(format!(
            "{name}: data_shape is {}; expected (channels, height, width) with 1, 3 or 4 channels",
            parameters.get("data_shape")
        ))),
    }
}

fn channels_of(shape: [usize; 3]) -> Channels {
    match shape[0] {
        1 => Channels::Grey,
        3 => Channels::Rgb,
        _ => Channels::Rgba,
    }
}

fn record_order(name: &str, parameters: &Attrs) -> Result<RecordOrder, DataError> {
    let text = |key: &str| Some(parameters.str(key)).filter(|path| !matches!(*path, "" | "None")).map(str::to_owned);
    let path = text("path_imgrec")
        .ok_or_else(|| DataError::Argument(format!("{name}: must specify path_imgrec, the file of records")))?;
    let index = if parameters.declares("path_imgidx") { text("path_imgidx") } else { None };
    let (shuffle, seed) = (parameters.bool("shuffle"), parameters.int("seed") as u64);
    Ok(RecordOrder { path, index, part: part(parameters), shuffle, seed })
}

fn label_list(parameters: &Attrs, width: Option<usize>) -> Result<Option<LabelList>, DataError> {
    match parameters.str("path_imglist") {
        "" | "None" => Ok(None),
        path => LabelList::read(path, width).map(Some),
    }
}

/// One image as it stands in a batch.
struct Sample {
    /// number of the image
    id: u64,
    data: Vec<u8>,
    label: Vec<u8>,
}

/// The processing of the records of `ImageRecordIter`.
struct Images {
    list: Option<LabelList>,
    width: usize,
    augment: Augment,
    channels: Channels,
    seed: u64,
}

impl Images {
    fn sample(
        &self,
        record: &PackedRecord,
        normalize: &Normalize,
        size: [usize; 2],
        bytes: usize,
    ) -> Result<Sample, String> {
        let parsed = ImageRecord::parse(&record.content)?;
        let labels = match &self.list {
            Some(list) => list.find(parsed.id)?,
            None => parsed.labels(self.width)?,
        };
        let label = labels.iter().flat_map(|label| label.to_ne_bytes()).collect();
        let mut random = Random::new(self.seed, record.pass, record.number);
        let image = decode(parsed.file, self.channels).map_err(|error| error.to_string())?;
        let image = self.augment.run(image, &mut random)?;
        let mut data = vec![0; bytes];
        normalize.run(&image, size, &mut random, &mut data);
        Ok(Sample { id: parsed.id, data, label })
    }
}

/// Samples that workers make of records.
struct ImageSamples {
    stage: Prefetcher<Records, Result<Sample, DataError>>,
    pass: Arc<AtomicU64>,
}

impl ImageSamples {
    fn start(
        engine: &'static Engine,
        threads: usize,
        order: &RecordOrder,
        make: impl Fn(PackedRecord) -> Result<Sample, String> + Send + Sync + 'static,
    ) -> Result<ImageSamples, DataError> {
        let pass = Arc::new(AtomicU64::new(0));
        let workers = threads.min(engine.cores());
        let open = {
            let (order, pass) = (order.clone(), pass.clone());
            move || Records::open(&order, pass.clone())
        };
        let path = order.path.clone();
        let work = move |record: PackedRecord| {
            let position = record.position;
            // A damaged image is a result like any other: what becomes of it is decided where
            // batches are made.
            Ok(engine
                .compute(|| make(record))
                .map_err(|problem| DataError::Content { place: format!("{path}: record at byte {position}"), problem }))
        };
        let stage = Prefetcher::with_workers(workers, 2 * workers, open, work)?;
        Ok(ImageSamples { stage, pass })
    }
}

impl Samples for ImageSamples {
    fn computes(&self) -> bool {
        false
    }

    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, SampleError> {
        match self.stage.next()? {
            Some(Ok(sample)) => {
                data.copy_from_slice(&sample.data);
                label.copy_from_slice(&sample.label);
                Ok(Some(sample.id))
            }
            Some(Err(error)) => Err(SampleError::Sample(error)),
            None => Ok(None),
        }
    }

    fn rewind(&mut self, pass: u64) -> Result<(), DataError> {
        self.pass.store(pass, Ordering::Relaxed);
        self.stage.reset()
    }
}
