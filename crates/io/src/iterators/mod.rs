//! Data iterators: one file and one row each.
//!
//! An iterator is a table of parameters and a function that makes a [`Source`] of samples out of
//! them. Batches ([`batch`]), running ahead in the background ([`prefetch`]), the parameters of
//! [`BATCH_PARAMETERS`] and the classes of `mx.io` are the same for all.

pub mod batch;
mod csr;
mod csv;
mod decimal;
mod images;
mod libsvm;
mod lines;
mod mnist;
pub mod prefetch;
mod rows;

use crate::DataError;
use batch::{BatchIter, BatchParams, LastBatch, Samples};
use mxrt_engine::{Engine, ForkSafeLazy};
use mxrt_tensor::attrs::{AttrDef, AttrKind, Attrs};
use mxrt_tensor::{DType, Shape};

/// Every iterator.
pub static ITERATORS: &[&IterDef] = &[
    &csv::CSV_ITER,
    &images::detection::IMAGE_DET_RECORD_ITER,
    &images::IMAGE_RECORD_INT8_ITER,
    &images::IMAGE_RECORD_ITER,
    &images::IMAGE_RECORD_ITER_V1,
    &images::IMAGE_RECORD_UINT8_ITER,
    &images::IMAGE_RECORD_UINT8_ITER_V1,
    &libsvm::LIBSVM_ITER,
    &mnist::MNIST_ITER,
];

/// One data iterator.
pub struct IterDef {
    /// name, as in `mx.io`
    pub name: &'static str,
    /// documentation: a sentence, more after an empty line
    pub doc: &'static str,
    /// parameters of this iterator, in groups; those of [`BATCH_PARAMETERS`] follow, except those
    /// that have the name of one of these
    pub parameters: &'static [&'static [AttrDef]],
    /// names of [`BATCH_PARAMETERS`] that it does not take
    pub omits: &'static [&'static str],
    /// checks the parameters and says what the samples will be
    pub source: fn(&Attrs) -> Result<Source, DataError>,
}

/// The source from which an iterator makes batches.
pub struct Source {
    /// element type of data
    pub dtype: DType,
    /// element type of labels
    pub label_dtype: DType,
    /// extents of one sample
    pub data_shape: Shape,
    /// extents of one label
    pub label_shape: Shape,
    /// opens the samples: once when the iterator is made, and again in a forked process that
    /// continues iterating
    pub open: Box<OpenSamples>,
}

/// Opens samples.
pub type OpenSamples = dyn Fn(&'static Engine) -> Result<Box<dyn Samples>, DataError> + Send + Sync;

/// Parameters that every iterator takes.
pub static BATCH_PARAMETERS: &[AttrDef] = &[
    AttrDef::required("batch_size", AttrKind::Int, "Samples in a batch.").unsigned(),
    AttrDef::new(
        "round_batch",
        AttrKind::Bool,
        "True",
        "Fill a short last batch up from the beginning; the next epoch continues after these \
        samples.",
    ),
    AttrDef::new("prefetch_buffer", AttrKind::Int, "4", "Batches made ahead in the background.").wide().unsigned(),
    AttrDef::new(
        "dtype",
        AttrKind::OptDType(DTYPES),
        "None",
        "Element type of data and labels; None is the iterator's own.",
    ),
    AttrDef::new("ctx", AttrKind::Str, "cpu", "Accepted and ignored: batches are made in memory of the host."),
    AttrDef::new("num_parts", AttrKind::IntFrom(1), "1", "Parts that the samples are divided in."),
    AttrDef::new("part_index", AttrKind::IntFrom(0), "0", "Which of the parts is read, from 0."),
    AttrDef::new(
        "on_error",
        AttrKind::Enum(&["raise", "skip"]),
        "raise",
        "What a damaged sample does: raise an error, or be left out and counted.",
    ),
];

const DTYPES: &[&str] = &["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"];

/// Own parameters and those of batches, for each of [`ITERATORS`].
static PARAMETERS: ForkSafeLazy<Vec<Vec<AttrDef>>> =
    ForkSafeLazy::new(|| ITERATORS.iter().map(|def| def.parameters_together()).collect());

impl IterDef {
    fn parameters_together(&self) -> Vec<AttrDef> {
        let mut all = self.parameters.concat();
        let own = all.len();
        for parameter in BATCH_PARAMETERS {
            if !self.omits.contains(&parameter.name) && all[..own].iter().all(|own| own.name != parameter.name) {
                all.push(*parameter);
            }
        }
        all
    }

    /// The iterator of this name.
    pub fn find(name: &str) -> Option<&'static IterDef> {
        ITERATORS.iter().copied().find(|def| def.name == name)
    }

    /// All parameters, in the order of the signature.
    pub fn all_parameters(&self) -> &'static [AttrDef] {
        let place = ITERATORS.iter().position(|def| def.name == self.name);
        place.map_or(&[], |place| &PARAMETERS[place])
    }

    /// Starts reading. What can be found wrong with parameters and files is reported here, errors
    /// in the content of files by [`BatchIter::next`].
    pub fn start<'a>(
        &self,
        engine: &'static Engine,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<BatchIter, DataError> {
        let parameters =
            Attrs::parse(self.all_parameters(), given).map_err(|error| DataError::Argument(error.message.clone()))?;
        if parameters.int("part_index") >= parameters.int("num_parts") {
            return Err(DataError::Argument(format!(
                "{}: part_index is {}, but num_parts is {}: parts are counted from 0",
                self.name,
                parameters.int("part_index"),
                parameters.int("num_parts")
            )));
        }
        let positive = |name: &str| match usize::try_from(parameters.int(name)) {
            Ok(value @ 1..) => Ok(value),
            _ => {
                let message = format!("{name} must be a positive number, not {}", parameters.int(name));
                Err(DataError::Argument(message))
            }
        };
        let (batch_size, prefetch_buffer) = (positive("batch_size")?, positive("prefetch_buffer")?);
        let Source { dtype, label_dtype, data_shape, label_shape, open } = (self.source)(&parameters)?;
        let last = match parameters.declares("round_batch") {
            false => LastBatch::Drop,
            true if parameters.bool("round_batch") => LastBatch::Wrap,
            true => LastBatch::Short,
        };
        let skip = parameters.str("on_error") == "skip";
        let csr = parameters.declares("dense") && !parameters.bool("dense");
        let batch =
            BatchParams { batch_size, last, skip, prefetch_buffer, dtype, label_dtype, data_shape, label_shape, csr };
        BatchIter::start(engine, batch, open)
    }
}

/// The extents that a parameter gives: positive numbers.
fn extents(iterator: &str, parameters: &Attrs, name: &str) -> Result<Shape, DataError> {
    let given = parameters.ints(name);
    let extent = |n: &i64| usize::try_from(*n).ok().filter(|n| *n > 0);
    given.iter().map(extent).collect::<Option<Shape>>().ok_or_else(|| {
        let shown = parameters.get(name);
        DataError::Argument(format!("{iterator}: the shape {shown} must consist of positive numbers"))
    })
}

/// The element type that was asked for: one of `supported`, whose first is what `None` means.
fn dtype(iterator: &str, parameters: &Attrs, supported: &[DType]) -> Result<DType, DataError> {
    let dtype = parameters.opt_dtype("dtype").unwrap_or(supported[0]);
    if supported.contains(&dtype) {
        return Ok(dtype);
    }
    let known = supported.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    Err(DataError::Unsupported(format!("{dtype} is not supported for {iterator}; supported: {known}")))
}

/// The parts that the samples are divided in, and the one that is read.
fn part(parameters: &Attrs) -> (u64, u64) {
    (parameters.int("num_parts") as u64, parameters.int("part_index") as u64)
}
