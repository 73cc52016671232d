//! `ImageDetRecordIter`: images with boxes of objects as batches.

use super::augment::{Choice, Random, crop_of, resized, shorter_edge};
use super::boxes::{Frame, Label};
use super::labels::{ImageRecord, LabelList};
use super::normalize::Normalize;
use super::records::{PackedRecord, RecordOrder, Records};
use super::{ImageSamples, Sample, channels_of, color, image_shape, label_list, record_order};
use crate::DataError;
use crate::image::{Channels, Pixels, decode};
use crate::iterators::batch::Samples;
use crate::iterators::prefetch::Producer;
use crate::iterators::{IterDef, Source, dtype};
use mxrt_engine::Engine;
use mxrt_kernels::image::border::{Border, Bordered};
use mxrt_kernels::par::Serial;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use mxrt_tensor::{DType, Shape};
use std::sync::Arc;

const NAME: &str = "ImageDetRecordIter";

/// Numbers before the labels of an image in a batch: channels, rows and columns, and the number of
/// its labels.
const HEAD: usize = 4;

const READING: &[AttrDef] = &[
    AttrDef::new("path_imglist", AttrKind::Str, "", "A list of labels by the numbers of images."),
    AttrDef::new("path_imgrec", AttrKind::Str, "./data/imgrec.rec", "The file of records."),
    AttrDef::new("aug_seq", AttrKind::Enum(&["det_aug_default"]), "det_aug_default", "The augmenter; there is one."),
    AttrDef::new("label_width", AttrKind::Int, "-1", "Labels of an image; -1 for any number."),
    AttrDef::required("data_shape", AttrKind::Shape, "Channels (1, 3 or 4), height and width of an image."),
    AttrDef::new(
        "preprocess_threads",
        AttrKind::IntFrom(1),
        "4",
        "Threads that decode, at most as many as the engine has cores, which they share with operators.",
    ),
    AttrDef::new("verbose", AttrKind::Bool, "True", "Accepted and ignored: nothing is printed."),
    AttrDef::new("shuffle_chunk_size", AttrKind::Int, "0", "Accepted and ignored: the whole part is shuffled.")
        .wide()
        .unsigned(),
    AttrDef::new("shuffle_chunk_seed", AttrKind::Int, "0", "Accepted and ignored, as shuffle_chunk_size."),
    AttrDef::new(
        "label_pad_width",
        AttrKind::Int,
        "0",
        "Numbers that labels are filled up to; 0 or less: as many as the longest label has.",
    ),
    AttrDef::new("label_pad_value", AttrKind::Float, "-1.0", "What labels are filled up with."),
    AttrDef::new("shuffle", AttrKind::Bool, "False", "Read the records in another order in each epoch, by chance."),
    AttrDef::new("seed", AttrKind::Int, "0", "Seed of everything by chance."),
];

const CHANGES: &[AttrDef] = &[
    AttrDef::new("resize", AttrKind::Int, "-1", "Make the shorter edge this long first; -1 leaves it."),
    AttrDef::new("rand_crop_prob", AttrKind::Float, "0.0", "Probability of a crop."),
    AttrDef::new("min_crop_scales", AttrKind::Floats, "(0.0,)", "Lowest scale of a crop, for each sampler."),
    AttrDef::new("max_crop_scales", AttrKind::Floats, "(1.0,)", "Highest scale of a crop, for each sampler."),
    AttrDef::new("min_crop_aspect_ratios", AttrKind::Floats, "(1.0,)", "Lowest aspect ratio of a crop."),
    AttrDef::new("max_crop_aspect_ratios", AttrKind::Floats, "(1.0,)", "Highest aspect ratio of a crop."),
    AttrDef::new("min_crop_overlaps", AttrKind::Floats, "(0.0,)", "Lowest overlap of the crop and an object."),
    AttrDef::new("max_crop_overlaps", AttrKind::Floats, "(1.0,)", "Highest overlap of the crop and an object."),
    AttrDef::new("min_crop_sample_coverages", AttrKind::Floats, "(0.0,)", "Lowest share of the crop in an object."),
    AttrDef::new("max_crop_sample_coverages", AttrKind::Floats, "(1.0,)", "Highest share of the crop in an object."),
    AttrDef::new("min_crop_object_coverages", AttrKind::Floats, "(0.0,)", "Lowest share of an object in the crop."),
    AttrDef::new("max_crop_object_coverages", AttrKind::Floats, "(1.0,)", "Highest share of an object in the crop."),
    AttrDef::new("num_crop_sampler", AttrKind::IntFrom(0), "1", "Number of samplers of crops."),
    AttrDef::new(
        "crop_emit_mode",
        AttrKind::Enum(&["center", "overlap"]),
        "center",
        "Which objects a crop drops: those whose centre is outside, or that overlap little.",
    ),
    AttrDef::new("emit_overlap_thresh", AttrKind::Float, "0.3", "Share of an object that must be in the crop."),
    AttrDef::new("max_crop_trials", AttrKind::Shape, "(25,)", "Attempts of each sampler."),
    AttrDef::new("rand_pad_prob", AttrKind::Float, "0.0", "Probability of a border."),
    AttrDef::new("max_pad_scale", AttrKind::Float, "1.0", "Highest scale of the image with its border."),
    AttrDef::new("max_random_hue", AttrKind::Int, "0", "Change hue (of 180) by up to this."),
    AttrDef::new("random_hue_prob", AttrKind::Float, "0.0", "Probability of a change of the hue."),
    AttrDef::new("max_random_saturation", AttrKind::Int, "0", "Change saturation (of 255) by up to this."),
    AttrDef::new("random_saturation_prob", AttrKind::Float, "0.0", "Probability of a change of the saturation."),
    AttrDef::new("max_random_illumination", AttrKind::Int, "0", "Change lightness (of 255) by up to this."),
    AttrDef::new("random_illumination_prob", AttrKind::Float, "0.0", "Probability of a change of the lightness."),
    AttrDef::new("max_random_contrast", AttrKind::Float, "0.0", "Change values by up to this share."),
    AttrDef::new("random_contrast_prob", AttrKind::Float, "0.0", "Probability of that."),
    AttrDef::new("rand_mirror_prob", AttrKind::Float, "0.0", "Probability of a mirrored image."),
    AttrDef::new("fill_value", AttrKind::Int, "127", "Value of pixels of a border."),
    AttrDef::new(
        "inter_method",
        AttrKind::Int,
        "1",
        "Interpolation: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 by the change of the size, 10 by chance.",
    ),
    AttrDef::new(
        "resize_mode",
        AttrKind::Enum(&["force", "shrink", "fit"]),
        "force",
        "How images get their size: stretched, made smaller in proportion, or fitted in proportion.",
    ),
    AttrDef::new("mean_img", AttrKind::Str, "", "A file with one array, which is subtracted."),
    AttrDef::new("mean_r", AttrKind::Float, "0.0", "Subtracted from red, or from grey."),
    AttrDef::new("mean_g", AttrKind::Float, "0.0", "Subtracted from green."),
    AttrDef::new("mean_b", AttrKind::Float, "0.0", "Subtracted from blue."),
    AttrDef::new("mean_a", AttrKind::Float, "0.0", "Subtracted from alpha."),
    AttrDef::new("std_r", AttrKind::Float, "0.0", "Red, or grey, is divided by this; 0 does not divide."),
    AttrDef::new("std_g", AttrKind::Float, "0.0", "Green is divided by this; 0 does not divide."),
    AttrDef::new("std_b", AttrKind::Float, "0.0", "Blue is divided by this; 0 does not divide."),
    AttrDef::new("std_a", AttrKind::Float, "0.0", "Alpha is divided by this; 0 does not divide."),
    AttrDef::new("scale", AttrKind::Float, "1.0", "Factor of all values after the mean is subtracted."),
];

pub(in crate::iterators) static IMAGE_DET_RECORD_ITER: IterDef = IterDef {
    name: NAME,
    doc: "Batches of the images of a RecordIO file with boxes of objects, decoded and changed in the background. A \
          label is channels, rows and columns of the image, the number of its labels, these, and what fills it up.",
    parameters: &[READING, CHANGES],
    omits: &[],
    source,
};

fn source(parameters: &Attrs) -> Result<Source, DataError> {
    let dtype = dtype(NAME, parameters, &[DType::F32])?;
    let shape = image_shape(NAME, parameters)?;
    let order = record_order(NAME, parameters)?;
    let fixed = usize::try_from(parameters.int("label_width")).ok().filter(|width| *width > 0);
    let list = label_list(parameters, fixed)?;
    let most = match &list {
        Some(list) => list.most(),
        None => longest_label(&order, fixed)?,
    };
    let width = match parameters.int("label_pad_width") {
        ..=0 => most,
        given if (given as u64) < most as u64 => {
            let message = format!("{NAME}: label_pad_width: {given} smaller than estimated width: {most}");
            return Err(DataError::Argument(message));
        }
        given => given as usize,
    };
    let fill = parameters.float("label_pad_value") as f32;
    let changes = Changes::new(parameters, shape)?;
    let seed = parameters.int("seed") as u64;
    let kind = Arc::new(Detection { list, fixed, width, fill, changes, channels: channels_of(shape), seed });
    let parameters = parameters.clone();
    let (data_shape, label_shape) = (Shape::new(&shape), Shape::new(&[HEAD + width]));
    let open = move |engine: &'static Engine| {
        let normalize = Normalize::new(NAME, &parameters, dtype, shape, engine)?.without_zeros();
        let kind = kind.clone();
        let make = move |record: PackedRecord| kind.sample(&record, &normalize, shape);
        let samples = ImageSamples::start(engine, parameters.count("preprocess_threads"), &order, make)?;
        Ok(Box::new(samples) as Box<dyn Samples>)
    };
    Ok(Source { dtype, label_dtype: DType::F32, data_shape, label_shape, open: Box::new(open) })
}

/// Most labels of a record.
fn longest_label(order: &RecordOrder, fixed: Option<usize>) -> Result<usize, DataError> {
    let mut records = Records::open(&RecordOrder { shuffle: false, ..order.clone() }, Arc::default())?;
    let mut most = 0;
    while let Some(record) = records.next()? {
        // What is wrong with a record is reported where its batch would be.
        if let Ok(parsed) = ImageRecord::parse(&record.content)
            && let Ok(labels) = labels_of(&parsed, None, fixed)
        {
            most = most.max(labels.len());
        }
    }
    Ok(most)
}

fn labels_of<'a>(
    record: &'a ImageRecord<'_>,
    list: Option<&'a LabelList>,
    fixed: Option<usize>,
) -> Result<&'a [f32], String> {
    match (list, fixed) {
        (Some(list), _) => list.find(record.id),
        (None, _) if !record.counted => Err("Not enough label packed in img_list or rec file.".to_owned()),
        (None, Some(width)) => record.labels(width),
        (None, None) => Ok(&record.labels),
    }
}

/// The processing of a record.
struct Detection {
    list: Option<LabelList>,
    fixed: Option<usize>,
    /// Labels of an image in a batch.
    width: usize,
    /// The value that fills them up.
    fill: f32,
    changes: Changes,
    channels: Channels,
    seed: u64,
}

impl Detection {
    fn sample(&self, record: &PackedRecord, normalize: &Normalize, shape: [usize; 3]) -> Result<Sample, String> {
        let parsed = ImageRecord::parse(&record.content)?;
        let mut label = Label::parse(labels_of(&parsed, self.list.as_ref(), self.fixed)?)?;
        let mut random = Random::new(self.seed, record.pass, record.number);
        let image = decode(parsed.file, self.channels).map_err(|error| error.to_string())?;
        let image = self.changes.run(image, &mut label, &mut random)?;
        let mut data = vec![0; shape.iter().product::<usize>() * size_of::<f32>()];
        normalize.run(&image, [shape[1], shape[2]], &mut random, &mut data);
        let labels = label.numbers();
        if labels.len() > self.width {
            return Err(format!("it has {} labels, but there is room for {}", labels.len(), self.width));
        }
        let head = [image.channels, image.height, image.width, labels.len()].map(|n| n as f32);
        let padding = std::iter::repeat_n(&self.fill, self.width - labels.len());
        let label = head.iter().chain(&labels).chain(padding).flat_map(|v| v.to_ne_bytes()).collect();
        Ok(Sample { id: parsed.id, data, label })
    }
}

/// How an image gets its size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Force,
    Shrink,
    Inside,
}

/// Crops that must hold some of the objects.
struct Sampler {
    scales: (f32, f32),
    aspects: (f32, f32),
    limits: super::boxes::OverlapLimits,
    trials: usize,
}

/// The changes to images and their objects.
struct Changes {
    to: [usize; 2],
    resize: Option<usize>,
    choice: Choice,
    fill: u8,
    fit: Fit,
    /// Most of hue, lightness, saturation and contrast, and their probabilities.
    colours: [(f32, f32); 4],
    mirror: f32,
    pad: (f32, f32),
    crop: f32,
    samplers: Vec<Sampler>,
    /// The share of an object that must be in a crop; None: its centre.
    keep: Option<f32>,
}

impl Changes {
    fn new(parameters: &Attrs, shape: [usize; 3]) -> Result<Changes, DataError> {
        let refused = |problem: String| Err(DataError::Argument(format!("{NAME}: {problem}")));
        let float = |name: &str| parameters.float(name) as f32;
        let resize = match parameters.int("resize") {
            -1 => None,
            edge @ 1.. => Some(edge as usize),
            edge => return refused(format!("resize is {edge}; expected a positive number, or -1")),
        };
        let most = ["max_random_hue", "max_random_illumination", "max_random_saturation"];
        let most = most.map(|name| parameters.int(name) as f32);
        let colours = [
            (most[0], float("random_hue_prob")),
            (most[1], float("random_illumination_prob")),
            (most[2], float("random_saturation_prob")),
            (float("max_random_contrast"), float("random_contrast_prob")),
        ];
        if colours[..3].iter().any(|(most, chance)| *most != 0.0 && *chance > 0.0) && shape[0] != 3 {
            return refused(format!("colours of images with {} channels cannot be changed by chance", shape[0]));
        }
        let keep = (parameters.str("crop_emit_mode") == "overlap").then(|| float("emit_overlap_thresh"));
        Ok(Changes {
            to: [shape[1], shape[2]],
            resize,
            choice: Choice::parse(NAME, parameters.int("inter_method"))?,
            fill: u8::try_from(parameters.int("fill_value").clamp(0, 255)).unwrap_or(127),
            fit: match parameters.str("resize_mode") {
                "force" => Fit::Force,
                "shrink" => Fit::Shrink,
                _ => Fit::Inside,
            },
            colours,
            mirror: float("rand_mirror_prob"),
            pad: (float("rand_pad_prob"), float("max_pad_scale")),
            crop: float("rand_crop_prob"),
            samplers: samplers(parameters)?,
            keep,
        })
    }

    fn run(&self, mut image: Pixels, label: &mut Label, random: &mut Random) -> Result<Pixels, String> {
        if let Some(edge) = self.resize {
            image = resized(&image, shorter_edge(&image, edge), self.choice, random)?;
        }
        self.recolour(&mut image, random);
        if self.mirror > 0.0 && random.between(0.0, 1.0) < self.mirror {
            label.mirror();
            let row = image.width * image.channels;
            for row in image.values.chunks_exact_mut(row) {
                row.reverse();
                row.chunks_exact_mut(image.channels).for_each(<[u8]>::reverse);
            }
        }
        if self.pad.0 > 0.0 && self.pad.1 > 1.0 && random.between(0.0, 1.0) < self.pad.0 {
            image = self.padded(image, label, random);
        }
        if self.crop > 0.0 && random.between(0.0, 1.0) < self.crop {
            image = self.cropped(image, label, random);
        }
        let (from, to) = ([image.height, image.width], self.to);
        let ratio = (to[0] as f32 / from[0] as f32).min(to[1] as f32 / from[1] as f32);
        let size = match self.fit {
            Fit::Force => to,
            Fit::Shrink if from[0] <= to[0] && from[1] <= to[1] => return Ok(image),
            Fit::Shrink | Fit::Inside => [0, 1].map(|i| ((ratio * from[i] as f32) as usize).min(to[i])),
        };
        resized(&image, size, self.choice, random)
    }

    fn recolour(&self, image: &mut Pixels, random: &mut Random) {
        if self.colours.iter().all(|(_, chance)| *chance <= 0.0) {
            return;
        }
        let shift = self.colours.map(|(most, chance)| {
            let shift = random.between(-1.0, 1.0) * most;
            if random.between(0.0, 1.0) < chance { shift } else { 0.0 }
        });
        let hls = [shift[0] as i32, shift[1] as i32, shift[2] as i32];
        if hls != [0; 3] {
            color::hls(image, hls);
        }
        if shift[3].abs() > 1e-3 {
            color::brightness(image, shift[3] + 1.0);
        }
    }

    fn padded(&self, image: Pixels, label: &mut Label, random: &mut Random) -> Pixels {
        let scale = random.between(1.0, self.pad.1);
        let (x, y) = (random.between(0.0, scale - 1.0), random.between(0.0, scale - 1.0));
        let Pixels { height, width, channels, .. } = image;
        let before = [(y * height as f32) as usize, (x * width as f32) as usize];
        let behind = [((scale - y - 1.0) * height as f32) as usize, ((scale - x - 1.0) * width as f32) as usize];
        let to = [before[0] + height + behind[0], before[1] + width + behind[1]];
        // A border that shows nothing is not made; nor is one there is no memory for.
        let bytes = to[0].checked_mul(to[1]).filter(|pixels| *pixels <= 1 << 30).map(|pixels| pixels * channels);
        let mut values = Vec::new();
        let Some(bytes) = bytes.filter(|bytes| scale >= 1.05 && values.try_reserve_exact(*bytes).is_ok()) else {
            return image;
        };
        values.resize(bytes, 0);
        let bordered = Bordered { shape: [height, width, channels], before, to, border: Border::Constant };
        let colour = [self.fill, self.fill, self.fill, 0];
        bordered.run(&Serial, &colour[..channels], &image.values, &mut values);
        label.pad(Frame { left: -x, top: -y, width: scale, height: scale });
        Pixels { height: to[0], width: to[1], channels, values }
    }

    /// A crop of the first sampler that finds one, of samplers in an order by chance.
    fn cropped(&self, image: Pixels, label: &mut Label, random: &mut Random) -> Pixels {
        let mut order: Vec<&Sampler> = self.samplers.iter().collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
        let aspect = image.width as f32 / image.height as f32;
        for sampler in order {
            for _ in 0..sampler.trials {
                let frame = sampler.frame(aspect, random);
                let at = [(frame.top * image.height as f32) as usize, (frame.left * image.width as f32) as usize];
                let size = [
                    ((frame.height * image.height as f32) as usize).min(image.height - at[0].min(image.height)),
                    ((frame.width * image.width as f32) as usize).min(image.width - at[1].min(image.width)),
                ];
                if !size.contains(&0) && label.crop(frame, &sampler.limits, self.keep) {
                    return crop_of(&image, at, size);
                }
            }
        }
        image
    }
}

impl Sampler {
    fn frame(&self, image_aspect: f32, random: &mut Random) -> Frame {
        let scale = random.between(self.scales.0, self.scales.1) + 1e-12;
        let low = (self.aspects.0 / image_aspect).max(scale * scale);
        let high = (self.aspects.1 / image_aspect).min(1.0 / (scale * scale));
        let ratio = random.between(low, high).max(0.0).sqrt();
        let (width, height) = ((scale * ratio).min(1.0), (scale / ratio).min(1.0));
        let (left, top) = (random.between(0.0, 1.0 - width), random.between(0.0, 1.0 - height));
        Frame { left, top, width, height }
    }
}

/// The samplers of crops; a parameter with one number holds for all.
fn samplers(parameters: &Attrs) -> Result<Vec<Sampler>, DataError> {
    let lists = SamplerLists { parameters, count: parameters.count("num_crop_sampler") };
    (0..lists.count).map(|i| lists.sampler(i)).collect()
}

/// The parameters of crops, which are lists with a number for each sampler.
struct SamplerLists<'a> {
    parameters: &'a Attrs,
    /// The number of samplers.
    count: usize,
}

impl SamplerLists<'_> {
    /// The sampler with this number.
    fn sampler(&self, i: usize) -> Result<Sampler, DataError> {
        let trials = self.parameters.ints("max_crop_trials");
        self.check("max_crop_trials", trials.len())?;
        let scales = self.range("scales", 0.0, i)?;
        if scales.1 > 1.0 || scales.0 == scales.1 {
            return Err(refused(format!("crop scales are {} to {}; expected a range up to 1", scales.0, scales.1)));
        }
        Ok(Sampler {
            scales,
            aspects: self.range("aspect_ratios", 0.0, i)?,
            limits: super::boxes::OverlapLimits {
                overlap: self.range("overlaps", f32::MIN, i)?,
                of_crop: self.range("sample_coverages", f32::MIN, i)?,
                of_object: self.range("object_coverages", f32::MIN, i)?,
            },
            trials: usize::try_from(trials[i.min(trials.len() - 1)]).unwrap_or(0),
        })
    }

    /// The lowest and the highest number of a quantity, for one sampler.
    fn range(&self, name: &str, lowest: f32, i: usize) -> Result<(f32, f32), DataError> {
        let [low, high] = ["min", "max"].map(|end| format!("{end}_crop_{name}"));
        let (first, last) = (self.number(&low, i)?, self.number(&high, i)?);
        if first >= lowest && first <= last {
            return Ok((first, last));
        }
        Err(refused(format!("{low} is {first} and {high} {last}; expected {lowest} <= {low} <= {high}")))
    }

    fn number(&self, name: &str, i: usize) -> Result<f32, DataError> {
        let given = self.parameters.floats(name);
        self.check(name, given.len())?;
        Ok(given[i.min(given.len() - 1)] as f32)
    }

    /// Refuses a list that has neither one number nor one for each sampler.
    fn check(&self, name: &str, given: usize) -> Result<(), DataError> {
        let count = self.count;
        if given == 1 || given == count {
            return Ok(());
        }
        Err(refused(format!("{name} has {given} numbers, but num_crop_sampler is {count}; expected one, or as many")))
    }
}

fn refused(problem: String) -> DataError {
    DataError::Argument(format!("{NAME}: {problem}"))
}
