//! Conversion of pixels to the numbers of a batch: mean, deviation, scale, contrast and mirrors.

use super::augment::Random;
use crate::DataError;
use crate::file::local_path;
use crate::image::Pixels;
use crate::params::{NpShape, Params, load};
use mxrt_engine::Engine;
use mxrt_tensor::DType;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use std::path::Path;

pub(super) const PARAMETERS: &[AttrDef] = &[
    AttrDef::new("mirror", AttrKind::Bool, "False", "Mirror every image."),
    AttrDef::new("rand_mirror", AttrKind::Bool, "False", "Mirror half of the images, by chance."),
    AttrDef::new("mean_img", AttrKind::Str, "", "A file with one array, which is subtracted."),
    AttrDef::new("mean_r", AttrKind::Float, "0.0", "Subtracted from red, or from grey."),
    AttrDef::new("mean_g", AttrKind::Float, "0.0", "Subtracted from green."),
    AttrDef::new("mean_b", AttrKind::Float, "0.0", "Subtracted from blue."),
    AttrDef::new("mean_a", AttrKind::Float, "0.0", "Subtracted from alpha."),
    AttrDef::new("std_r", AttrKind::Float, "1.0", "Red, or grey, is divided by this."),
    AttrDef::new("std_g", AttrKind::Float, "1.0", "Green is divided by this."),
    AttrDef::new("std_b", AttrKind::Float, "1.0", "Blue is divided by this."),
    AttrDef::new("std_a", AttrKind::Float, "1.0", "Alpha is divided by this."),
    AttrDef::new("scale", AttrKind::Float, "1.0", "Factor of all values after the mean is subtracted."),
    AttrDef::new("max_random_contrast", AttrKind::Float, "0.0", "Change the contrast by up to this, by chance."),
    AttrDef::new("max_random_illumination", AttrKind::Float, "0.0", "Add up to this to all values, by chance."),
];

/// The element types there are.
pub(super) const DTYPES: &[DType] = &[DType::F32, DType::U8, DType::I8];

/// The conversion of pixels to numbers.
pub(super) struct Normalize {
    dtype: DType,
    mirror: bool,
    rand_mirror: bool,
    means: [f32; 4],
    /// One number for each of the result, if there is a mean image.
    mean_image: Option<Vec<f32>>,
    deviations: [f32; 4],
    scale: f32,
    contrast: f32,
    illumination: f32,
}

impl Normalize {
    /// `shape`: channels, height and width.
    pub(super) fn new(
        iterator: &str,
        parameters: &Attrs,
        dtype: DType,
        shape: [usize; 3],
        engine: &'static Engine,
    ) -> Result<Normalize, DataError> {
        let declared = parameters.declares("scale");
        let float = |name: &str, default: f32| if declared { parameters.float(name) as f32 } else { default };
        let flag = |name: &str| declared && parameters.declares(name) && parameters.bool(name);
        let chance = |name: &str| {
            if parameters.declares("rand_mirror") { float(name, 0.0) } else { 0.0 }
        };
        let deviations = ["std_r", "std_g", "std_b", "std_a"].map(|name| float(name, 1.0));
        let mean_image = match if declared { parameters.str("mean_img") } else { "" } {
            "" | "None" => None,
            path => Some(mean_image(iterator, path, shape, engine)?),
        };
        Ok(Normalize {
            dtype,
            mirror: flag("mirror"),
            rand_mirror: flag("rand_mirror"),
            means: ["mean_r", "mean_g", "mean_b", "mean_a"].map(|name| float(name, 0.0)),
            mean_image,
            deviations,
            scale: float("scale", 1.0),
            contrast: chance("max_random_contrast"),
            illumination: chance("max_random_illumination"),
        })
    }

    /// Deviations that are not positive divide by nothing, as those of detection iterators.
    pub(super) fn without_zeros(mut self) -> Normalize {
        for deviation in self.deviations.iter_mut().filter(|deviation| **deviation <= 0.0) {
            *deviation = 1.0;
        }
        self
    }

    /// Writes the planes of an image into `out`, whose rows and columns may be more than the image
    /// has: `columns` of them in a row, `rows` rows in a plane.
    pub(super) fn run(&self, image: &Pixels, [rows, columns]: [usize; 2], random: &mut Random, out: &mut [u8]) {
        let mirrored = (self.rand_mirror && random.coin()) || self.mirror;
        let (mut contrast, mut illumination) = (self.scale, 0.0);
        if self.dtype != DType::U8 {
            contrast = (random.between(0.0, 1.0) * self.contrast * 2.0 - self.contrast + 1.0) * self.scale;
            illumination = (random.between(0.0, 1.0) * self.illumination * 2.0 - self.illumination) * self.scale;
        }
        let width = self.dtype.size();
        for (channel, plane) in out.chunks_exact_mut(rows * columns * width).enumerate() {
            let factor = contrast / self.deviations[channel];
            let shift = illumination / self.deviations[channel];
            let mean = self.means[channel];
            let means = self.mean_image.as_ref().map(|image| &image[channel * rows * columns..][..rows * columns]);
            let lines = image.values.chunks_exact(image.width * image.channels);
            for (y, (line, row)) in lines.zip(plane.chunks_exact_mut(columns * width)).enumerate() {
                let pixels = line[channel..].iter().step_by(image.channels).copied();
                let means = means.map(|means| &means[y * columns..][..columns]);
                let mean_at = |x: usize| means.map_or(mean, |means| means[x]);
                match self.dtype {
                    DType::U8 => place(row, mirrored, image.width, pixels.map(|v| [v])),
                    DType::I8 => {
                        let values = pixels.enumerate().map(|(x, v)| {
                            let mean = mean_at(x).round() as i16;
                            [(i16::from(v).saturating_sub(mean)).clamp(-128, 127) as i8 as u8]
                        });
                        place(row, mirrored, image.width, values);
                    }
                    _ => {
                        let values = pixels.enumerate();
                        let values = values.map(|(x, v)| ((f32::from(v) - mean_at(x)) * factor + shift).to_ne_bytes());
                        place(row, mirrored, image.width, values);
                    }
                }
            }
        }
    }
}

/// Writes the values of a line into the first columns of a row.
fn place<const N: usize>(row: &mut [u8], mirrored: bool, width: usize, values: impl Iterator<Item = [u8; N]>) {
    let (places, _) = row.as_chunks_mut::<N>();
    let places = &mut places[..width];
    if mirrored {
        places.iter_mut().rev().zip(values).for_each(|(place, value)| *place = value);
    } else {
        places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
    }
}

/// The numbers of a mean image.
fn mean_image(iterator: &str, path: &str, shape: [usize; 3], engine: &'static Engine) -> Result<Vec<f32>, DataError> {
    let wrong = |problem: String| DataError::Content { place: path.to_owned(), problem };
    if !local_path(Path::new(path)).exists() {
        return Err(DataError::Unsupported(format!(
            "{iterator}: there is no mean image {path}. Making one is not part of this build of mxrt: save the mean of \
             the images with mx.nd.save, or give mean_r, mean_g and mean_b"
        )));
    }
    let loaded = load(engine, path, NpShape::Off).map_err(|error| wrong(error.to_string()))?;
    let mut arrays = match loaded {
        Params::List(arrays) => arrays,
        Params::Named(named) => named.into_iter().map(|(_, array)| array).collect(),
    };
    let array = match (arrays.pop(), arrays.is_empty()) {
        (Some(array), true) => array,
        _ => return Err(wrong("Invalid mean image file format: expected one array".to_owned())),
    };
    let found = array.tensor_type();
    if found.dtype != DType::F32 || found.shape[..] != shape {
        return Err(wrong(format!("the mean image is {found}; expected float32 {shape:?} as data_shape")));
    }
    let bytes = array.to_bytes().map_err(|failure| wrong(failure.to_string()))?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|v| f32::from_ne_bytes(*v)).collect())
}
