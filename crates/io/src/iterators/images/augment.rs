//! The default augmenter of MXNet's iterators: sizes, crops, maps and colours of one image.

use super::recolour::ColourChanges;
use super::warp::warped;
use crate::DataError;
use crate::image::Pixels;
use mxrt_kernels::image::border::{Border, Bordered};
use mxrt_kernels::image::resize::{Interpolation, Resize};
use mxrt_kernels::par::Serial;
use mxrt_kernels::random::Stream;
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};

/// Most pixels of an image that is being changed.
const PIXELS: usize = 1 << 30;

pub(super) const PARAMETERS: &[AttrDef] = &[
    AttrDef::new("resize", AttrKind::Int, "-1", "Make the shorter edge this long first; -1 leaves it."),
    AttrDef::new("rand_crop", AttrKind::Bool, "False", "Crop anywhere instead of in the centre."),
    AttrDef::new(
        "random_resized_crop",
        AttrKind::Bool,
        "False",
        "Crop an area by chance and give it the size of data_shape.",
    ),
    AttrDef::new("max_rotate_angle", AttrKind::IntFrom(0), "0", "Largest random rotation, in degrees."),
    AttrDef::new("max_aspect_ratio", AttrKind::Float, "0.0", "Change the aspect ratio by up to this, by chance."),
    AttrDef::new(
        "min_aspect_ratio",
        AttrKind::OptFloat,
        "None",
        "Lowest aspect ratio; with it max_aspect_ratio is the highest.",
    ),
    AttrDef::new("max_shear_ratio", AttrKind::Float, "0.0", "Shear by up to this, by chance."),
    AttrDef::new("max_crop_size", AttrKind::Int, "-1", "Longest edge of a square that is cropped and resized."),
    AttrDef::new("min_crop_size", AttrKind::Int, "-1", "Shortest edge of that square."),
    AttrDef::new("max_random_scale", AttrKind::Float, "1.0", "Highest factor of the size, by chance."),
    AttrDef::new("min_random_scale", AttrKind::Float, "1.0", "Lowest factor of the size."),
    AttrDef::new("max_random_area", AttrKind::Float, "1.0", "Largest share that random_resized_crop takes."),
    AttrDef::new("min_random_area", AttrKind::Float, "1.0", "Smallest share that random_resized_crop takes."),
    AttrDef::new("max_img_size", AttrKind::Float, "1e10", "Longest edge after a random change of the size."),
    AttrDef::new("min_img_size", AttrKind::Float, "0.0", "Shortest edge after a random change of the size."),
    AttrDef::new("brightness", AttrKind::Float, "0.0", "Change brightness by up to this share, by chance."),
    AttrDef::new("contrast", AttrKind::Float, "0.0", "Change contrast by up to this share, by chance."),
    AttrDef::new("saturation", AttrKind::Float, "0.0", "Change saturation by up to this share, by chance."),
    AttrDef::new("pca_noise", AttrKind::Float, "0.0", "Deviation of noise along the main directions of colours."),
    AttrDef::new("random_h", AttrKind::Int, "0", "Change hue (of 180) by up to this, by chance."),
    AttrDef::new("random_s", AttrKind::Int, "0", "Change saturation (of 255) by up to this, by chance."),
    AttrDef::new("random_l", AttrKind::Int, "0", "Change lightness (of 255) by up to this, by chance."),
    AttrDef::new("rotate", AttrKind::Int, "-1", "Degrees of a fixed rotation, if more than 0."),
    AttrDef::new("fill_value", AttrKind::Int, "255", "Value of pixels outside of the image."),
    AttrDef::new(
        "inter_method",
        AttrKind::Int,
        "1",
        "Interpolation: 0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 by the change of the size, 10 by chance.",
    ),
    AttrDef::new("pad", AttrKind::IntFrom(0), "0", "Pixels of a border around the image."),
];

/// Ways to interpolate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Nearest,
    Linear,
    Cubic,
    Area,
    Lanczos,
}

/// Ways to interpolate as they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Always(Method),
    /// Cubic where images grow, area where they shrink, linear otherwise.
    BySize,
    Random,
}

impl Choice {
    pub(super) fn parse(iterator: &str, given: i64) -> Result<Choice, DataError> {
        Ok(match given {
            0 => Choice::Always(Method::Nearest),
            1 => Choice::Always(Method::Linear),
            2 => Choice::Always(Method::Cubic),
            3 => Choice::Always(Method::Area),
            4 => Choice::Always(Method::Lanczos),
            9 => Choice::BySize,
            10 => Choice::Random,
            other => {
                let message = format!("{iterator}: inter_method is {other}; expected 0, 1, 2, 3, 4, 9 or 10");
                return Err(DataError::Argument(message));
            }
        })
    }

    /// The way for images of `[height, width]` pixels.
    pub(super) fn method(self, from: [usize; 2], to: [usize; 2], random: &mut Random) -> Method {
        let all = |holds: fn(&usize, &usize) -> bool| to.iter().zip(&from).all(|(to, from)| holds(to, from));
        match self {
            Choice::Always(method) => method,
            Choice::BySize if all(|to, from| to > from) => Method::Cubic,
            Choice::BySize if all(|to, from| to < from) => Method::Area,
            Choice::BySize => Method::Linear,
            Choice::Random => {
                [Method::Nearest, Method::Linear, Method::Cubic, Method::Area, Method::Lanczos][random.below(5)]
            }
        }
    }
}

/// Numbers by chance, of one sample alone.
pub(super) struct Random(Stream);

impl Random {
    /// Makes the random numbers of a sample in a pass.
    pub(super) fn new(seed: u64, pass: u64, sample: u64) -> Random {
        // The first stream of a pass is that of the order of samples.
        Random(Stream::new(seed, pass, sample + 1))
    }

    /// A number in `[low, high)`.
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.0.uniform() as f32
    }

    /// A whole number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.0.next_u64()) * end as u128) >> 64) as usize
    }

    /// True once in two times.
    pub(super) fn coin(&mut self) -> bool {
        self.0.uniform() < 0.5
    }

    pub(super) fn normal(&mut self, deviation: f32) -> f32 {
        self.0.normal() as f32 * deviation
    }
}

/// The augmentations of an image.
pub(super) struct Augment {
    /// Height and width of the result.
    to: [usize; 2],
    resize: Option<usize>,
    choice: Choice,
    fill: u8,
    pad: usize,
    rand_crop: bool,
    /// Edges of the square that is cropped and resized.
    crop_sizes: Option<(usize, usize)>,
    /// Shares of the area that is cropped and resized.
    areas: Option<(f32, f32)>,
    affine: Option<Affine>,
    aspects: (f32, f32),
    colours: ColourChanges,
}

/// Maps by chance.
struct Affine {
    angles: (i64, i64),
    shear: f32,
    scales: (f32, f32),
    aspects: (f32, f32),
    sizes: (f32, f32),
}

impl Augment {
    /// `data_shape`: channels, height and width of the result.
    pub(super) fn new(iterator: &str, parameters: &Attrs, data_shape: [usize; 3]) -> Result<Augment, DataError> {
        let refused = |problem: String| DataError::Argument(format!("{iterator}: {problem}"));
        let resized_crop = parameters.bool("random_resized_crop");
        if resized_crop && has_other_crops(parameters) {
            return Err(refused(
                "random_resized_crop conflicts with min_random_scale, max_random_scale, min_crop_size, max_crop_size \
                 and rand_crop"
                    .to_owned(),
            ));
        }
        let crop_sizes = crop_sizes(parameters).map_err(refused)?;
        let resize = shorter_edge_length(parameters).map_err(refused)?;
        let aspects = aspect_ratios(parameters);
        let areas = if resized_crop { crop_areas(parameters, aspects).map_err(refused)? } else { None };
        let choice = Choice::parse(iterator, parameters.int("inter_method"))?;
        let affine = Affine::new(parameters, if resized_crop { (1.0, 1.0) } else { aspects });
        if affine.is_some() && matches!(choice, Choice::Always(Method::Cubic | Method::Lanczos)) {
            return Err(DataError::Unsupported(format!(
                "{iterator}: turning, shearing and scaling by chance with inter_method {} is not part of this build of \
                 mxrt; 0, 1, 3 and 9 are",
                parameters.int("inter_method")
            )));
        }
        Ok(Augment {
            to: [data_shape[1], data_shape[2]],
            resize,
            choice,
            fill: u8::try_from(parameters.int("fill_value").clamp(0, 255)).unwrap_or(255),
            pad: parameters.count("pad"),
            rand_crop: parameters.bool("rand_crop"),
            crop_sizes,
            areas,
            affine,
            aspects,
            colours: ColourChanges::new(parameters, data_shape[0]).map_err(refused)?,
        })
    }

    /// The image as it should be: `data_shape` with the channels that it has.
    pub(super) fn run(&self, mut image: Pixels, random: &mut Random) -> Result<Pixels, String> {
        if let Some(edge) = self.resize {
            image = resized(&image, shorter_edge(&image, edge), self.choice, random)?;
        }
        if let Some(affine) = &self.affine {
            image = affine.run(&image, self.choice, self.fill, random)?;
        }
        if self.pad > 0 {
            image = self.padded(&image)?;
        }
        image = match self.cropped(&image, random)? {
            Some(image) => image,
            None => self.window(image, random)?,
        };
        self.colours.run(&mut image, random);
        Ok(image)
    }

    fn padded(&self, image: &Pixels) -> Result<Pixels, String> {
        let Pixels { height, width, channels, .. } = *image;
        let grown = |n: usize| self.pad.checked_mul(2).and_then(|pad| pad.checked_add(n)).unwrap_or(usize::MAX);
        let to = [grown(height), grown(width)];
        let mut values = room(to, channels)?;
        let bordered =
            Bordered { shape: [height, width, channels], before: [self.pad; 2], to, border: Border::Constant };
        let colour = [self.fill, self.fill, self.fill, 0];
        bordered.run(&Serial, &colour[..channels], &image.values, &mut values);
        Ok(Pixels { height: to[0], width: to[1], channels, values })
    }

    /// The image made of a crop of chance size, where one was asked for.
    fn cropped(&self, image: &Pixels, random: &mut Random) -> Result<Option<Pixels>, String> {
        let Pixels { height, width, .. } = *image;
        if let Some((low, high)) = self.areas {
            let area = (height * width) as f32;
            for _ in 0..10 {
                let target = area * random.between(low, high);
                let ratio = random.between(self.aspects.0, self.aspects.1);
                let mut crop = [(target / ratio).sqrt().round() as usize, (target * ratio).sqrt().round() as usize];
                if random.coin() {
                    crop.reverse();
                }
                if crop[0] > 0 && crop[1] > 0 && crop[0] <= height && crop[1] <= width {
                    let at = [random.below(height - crop[0] + 1), random.below(width - crop[1] + 1)];
                    return resized(&crop_of(image, at, crop), self.to, self.choice, random).map(Some);
                }
            }
        } else if let Some((low, high)) = self.crop_sizes {
            if height < high || width < high {
                return Err(format!("input image size smaller than max_crop_size: {height} x {width}, and {high}"));
            }
            let edge = low + random.below(high - low + 1);
            let at = self.place([height - edge, width - edge], random);
            return resized(&crop_of(image, at, [edge, edge]), self.to, self.choice, random).map(Some);
        }
        Ok(None)
    }

    /// A crop of the final size, of an image that is enlarged if it is smaller.
    fn window(&self, mut image: Pixels, random: &mut Random) -> Result<Pixels, String> {
        let [rows, columns] = self.to;
        let method = self.choice.method([image.height, image.width], self.to, random);
        let choice = Choice::Always(method);
        if image.height < rows {
            let width = (rows as f32 / image.height as f32 * image.width as f32) as usize;
            image = resized(&image, [rows, width], choice, random)?;
        }
        if image.width < columns {
            let height = (columns as f32 / image.width as f32 * image.height as f32) as usize;
            image = resized(&image, [height, columns], choice, random)?;
        }
        if image.height < rows || image.width < columns {
            return Err(format!("input image size smaller than input shape: {} x {}", image.height, image.width));
        }
        if [image.height, image.width] == self.to {
            return Ok(image);
        }
        let at = self.place([image.height - rows, image.width - columns], random);
        Ok(crop_of(&image, at, self.to))
    }

    fn place(&self, spare: [usize; 2], random: &mut Random) -> [usize; 2] {
        if self.rand_crop { spare.map(|n| random.below(n + 1)) } else { spare.map(|n| n / 2) }
    }
}

/// Whether crops or scales are asked for that `random_resized_crop` excludes.
fn has_other_crops(parameters: &Attrs) -> bool {
    scales(parameters) != (1.0, 1.0)
        || ["min_crop_size", "max_crop_size"].iter().any(|name| parameters.int(name) != -1)
        || parameters.bool("rand_crop")
}

/// The lowest and the highest factor of the size.
fn scales(parameters: &Attrs) -> (f32, f32) {
    (parameters.float("min_random_scale") as f32, parameters.float("max_random_scale") as f32)
}

/// The lowest and the highest aspect ratio.
fn aspect_ratios(parameters: &Attrs) -> (f32, f32) {
    let most = parameters.float("max_aspect_ratio") as f32;
    match parameters.opt_float("min_aspect_ratio") {
        Some(min) => (min as f32, most),
        None => (1.0 - most, 1.0 + most),
    }
}

/// The shortest and the longest edge of the square to crop, if one is asked for.
fn crop_sizes(parameters: &Attrs) -> Result<Option<(usize, usize)>, String> {
    match (parameters.int("min_crop_size"), parameters.int("max_crop_size")) {
        (-1, -1) => Ok(None),
        (min @ 1.., max) if max >= min => Ok(Some((min as usize, max as usize))),
        (min, max) => Err(format!("min_crop_size is {min} and max_crop_size {max}; expected 1 <= min <= max")),
    }
}

/// The length of the shorter edge to resize to, if one is asked for.
fn shorter_edge_length(parameters: &Attrs) -> Result<Option<usize>, String> {
    match parameters.int("resize") {
        -1 => Ok(None),
        edge @ 1.. => Ok(Some(edge as usize)),
        edge => Err(format!("resize is {edge}; expected a positive number, or -1")),
    }
}

/// The shares of the area that `random_resized_crop` takes, unless it would change nothing.
fn crop_areas(parameters: &Attrs, aspects: (f32, f32)) -> Result<Option<(f32, f32)>, String> {
    let areas = (parameters.float("min_random_area") as f32, parameters.float("max_random_area") as f32);
    if areas == (1.0, 1.0) && aspects == (1.0, 1.0) {
        return Ok(None);
    }
    if aspects.0 > 0.0 && aspects.0 <= aspects.1 && areas.0 <= areas.1 {
        return Ok(Some(areas));
    }
    Err(format!(
        "aspect ratios are {} to {} and areas {} to {}; expected positive ratios, and the lower ones first",
        aspects.0, aspects.1, areas.0, areas.1
    ))
}

impl Affine {
    /// The maps that the parameters ask for, if these change images.
    fn new(parameters: &Attrs, aspects: (f32, f32)) -> Option<Affine> {
        let float = |name: &str| parameters.float(name) as f32;
        let (most, fixed) = (parameters.int("max_rotate_angle"), parameters.int("rotate"));
        let affine = Affine {
            angles: if fixed > 0 { (fixed, fixed) } else { (-most, most) },
            shear: float("max_shear_ratio"),
            scales: scales(parameters),
            aspects,
            sizes: (float("min_img_size"), float("max_img_size")),
        };
        affine.changes().then_some(affine)
    }

    fn changes(&self) -> bool {
        self.angles != (0, 0)
            || self.shear > 0.0
            || self.scales != (1.0, 1.0)
            || self.aspects != (1.0, 1.0)
            || self.sizes != (0.0, 1e10)
    }

    fn run(&self, image: &Pixels, choice: Choice, fill: u8, random: &mut Random) -> Result<Pixels, String> {
        let shear = random.between(-self.shear, self.shear);
        let angle = self.angles.0 + random.below((self.angles.1 - self.angles.0) as usize + 1) as i64;
        let (sin, cos) = (angle as f64).to_radians().sin_cos();
        let (a, b) = (cos as f32, sin as f32);
        let scale = random.between(self.scales.0, self.scales.1);
        let ratio = random.between(self.aspects.0, self.aspects.1);
        let hs = 2.0 * scale / (1.0 + ratio);
        let ws = ratio * hs;
        let (rows, columns) = (image.height as f32, image.width as f32);
        let size = |n: f32| (scale * n).min(self.sizes.1).max(self.sizes.0);
        let (height, width) = (size(rows), size(columns));
        let mut map = [[hs * a - shear * b * ws, hs * b + shear * a * ws, 0.0], [-b * ws, a * ws, 0.0]];
        for (row, extent) in map.iter_mut().zip([width, height]) {
            row[2] = (extent - (row[0] * columns + row[1] * rows)) / 2.0;
        }
        let to = [height as usize, width as usize];
        check(to)?;
        let method = match choice.method([image.height, image.width], to, random) {
            Method::Nearest => Method::Nearest,
            // Areas are mixed from neighbours here; so are the ways that chance or growth chose.
            _ => Method::Linear,
        };
        Ok(warped(image, map, to, method, fill))
    }
}

/// Height and width with a shorter edge of `edge` pixels, in proportion.
pub(super) fn shorter_edge(image: &Pixels, edge: usize) -> [usize; 2] {
    let Pixels { height, width, .. } = *image;
    let longer = |long: usize, short: usize| edge.saturating_mul(long) / short.max(1);
    if height > width { [longer(height, width), edge] } else { [edge, longer(width, height)] }
}

/// Refuses sizes without pixels, and with too many.
fn check(size: [usize; 2]) -> Result<(), String> {
    match size[0].checked_mul(size[1]) {
        Some(1..=PIXELS) => Ok(()),
        _ => Err(format!("the image would become {} x {} pixels", size[0], size[1])),
    }
}

/// Room for the values of an image.
fn room(size: [usize; 2], channels: usize) -> Result<Vec<u8>, String> {
    check(size)?;
    let bytes = size[0] * size[1] * channels;
    let mut values = Vec::new();
    values.try_reserve_exact(bytes).map_err(|_| format!("there is no memory for an image of {bytes} bytes"))?;
    values.resize(bytes, 0);
    Ok(values)
}

/// An image of `to` rows and columns.
pub(super) fn resized(image: &Pixels, to: [usize; 2], choice: Choice, random: &mut Random) -> Result<Pixels, String> {
    let from = [image.height, image.width];
    let interpolation = match choice.method(from, to, random) {
        Method::Nearest => Interpolation::Nearest,
        Method::Linear => Interpolation::Linear,
        Method::Cubic => Interpolation::Cubic,
        Method::Area => Interpolation::Area,
        Method::Lanczos => Interpolation::Lanczos,
    };
    let mut values = room(to, image.channels)?;
    check(from)?;
    if from == to {
        return Ok(image.clone());
    }
    Resize { from, to, channels: image.channels, interpolation }.run(&Serial, &image.values, &mut values);
    Ok(Pixels { height: to[0], width: to[1], channels: image.channels, values })
}

/// The part of an image from a row and a column on.
pub(super) fn crop_of(image: &Pixels, at: [usize; 2], size: [usize; 2]) -> Pixels {
    let channels = image.channels;
    let rows = image.values.chunks_exact(image.width * channels).skip(at[0]).take(size[0]);
    let values = rows.flat_map(|row| &row[at[1] * channels..(at[1] + size[1]) * channels]).copied().collect();
    Pixels { height: size[0], width: size[1], channels, values }
}
