//! Batches of samples: the common part of all data iterators.

use super::OpenSamples;
use super::csr::{StoredRow, join};
use super::prefetch::{Prefetcher, Problem, Producer};
use crate::{DataError, FileError};
use mxrt_engine::{Engine, memory::Block};
use mxrt_tensor::{Context, DType, NDArray, Shape, TensorType};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long rows are read before the core goes to an op that waits for one.
const TURN: Duration = Duration::from_millis(1);

/// A batch as the user sees it.
#[derive(Clone, Debug)]
pub struct DataBatch {
    /// the samples, `(batch_size, …data_shape)`
    pub data: NDArray,
    /// the labels, `(batch_size, …label_shape)`, or `(batch_size,)` where a sample has one label
    pub label: NDArray,
    /// how many samples at the end do not count
    pub pad: usize,
    /// numbers of the samples
    pub index: Vec<u64>,
    /// the first label of 2^24 or more in float32, which has not all whole numbers there: the file
    /// may have another one
    pub inexact_label: Option<f32>,
}

/// The number from which on float32 has not all whole numbers.
const EXACT: f32 = (1 << 24) as f32;

/// The reason why there is no sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleError {
    /// This sample is damaged; the next call gives the following one.
    Sample(DataError),
    /// The iterator cannot continue.
    Source(DataError),
}

impl From<DataError> for SampleError {
    fn from(error: DataError) -> SampleError {
        SampleError::Source(error)
    }
}

impl From<FileError> for SampleError {
    fn from(error: FileError) -> SampleError {
        SampleError::Source(error.into())
    }
}

/// A sequence of samples that can be begun again.
pub trait Samples: Send {
    /// Writes the next sample and its label, as elements of the type that was promised, and gives
    /// its number; `None` at the end. On an error the content of both buffers is arbitrary.
    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, SampleError>;

    /// Whether `next` computes in the calling thread, and so needs a core of the engine; false
    /// where it waits for other threads.
    fn computes(&self) -> bool {
        true
    }

    /// Takes the row of the sample that `next` gave last, where data are csr matrices: `next` then
    /// writes no data.
    fn stored(&mut self) -> StoredRow {
        StoredRow::default()
    }

    /// Goes back to the first sample. `pass` counts the passes over the samples from 0 on, as the
    /// consumer sees them: how far was read ahead does not change it. Random orders follow from it.
    fn rewind(&mut self, pass: u64) -> Result<(), DataError>;
}

/// The treatment of samples at the end that do not fill a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastBatch {
    /// Samples from the beginning fill the batch up.
    Wrap,
    /// The batch has rows to spare.
    Short,
    /// Drops the samples.
    Drop,
}

/// How samples become batches.
#[derive(Clone, Debug)]
pub(super) struct BatchParams {
    /// samples in a batch
    pub batch_size: usize,
    /// treatment of a last, short batch
    pub last: LastBatch,
    /// whether damaged samples are left out
    pub skip: bool,
    /// batches made ahead
    pub prefetch_buffer: usize,
    /// element type of data
    pub dtype: DType,
    /// element type of labels
    pub label_dtype: DType,
    /// extents of one sample
    pub data_shape: Shape,
    /// extents of one label
    pub label_shape: Shape,
    /// whether data is a csr matrix
    pub csr: bool,
}

impl BatchParams {
    /// Types of the data and the labels of a batch.
    fn types(&self) -> (TensorType, TensorType) {
        let batch = |dtype, sample: &[usize]| {
            let shape = std::iter::once(self.batch_size).chain(sample.iter().copied()).collect::<Shape>();
            TensorType { dtype, shape }
        };
        // MXNet gives single labels without an axis of their own.
        let label: &[usize] = if self.label_shape[..] == [1] { &[] } else { &self.label_shape };
        (batch(self.dtype, &self.data_shape), batch(self.label_dtype, label))
    }
}

/// Joins samples into batches.
struct Batches {
    engine: &'static Engine,
    samples: Box<dyn Samples>,
    params: BatchParams,
    data_type: TensorType,
    label_type: TensorType,
    /// Content of the batch being made. Rows that a short last batch does not fill keep their old
    /// values.
    data: Block,
    /// The rows of a batch that is a csr matrix; `data` is empty then.
    stored: Vec<StoredRow>,
    label: Block,
    index: Vec<u64>,
    /// Damaged samples since the last item.
    skipped: Vec<DataError>,
    /// Batches made since the last reset.
    made: u64,
    /// The pass over the samples that this epoch began in.
    pass: u64,
    /// The number of the batch that was filled up from the beginning: the epoch ends after it, and
    /// the next one begins where it ended.
    wrapped: Option<u64>,
}

/// The result of one step.
struct Made {
    /// the batch; none at the end, if samples after the last batch were left out
    batch: Option<DataBatch>,
    /// problems of samples that were left out before those of the batch, and between them
    skipped: Vec<DataError>,
}

impl Batches {
    fn new(engine: &'static Engine, samples: Box<dyn Samples>, params: BatchParams) -> Result<Batches, DataError> {
        let (data_type, label_type) = params.types();
        let none = TensorType::new(data_type.dtype, [0]);
        let data = buffer(engine, if params.csr { &none } else { &data_type })?;
        let label = buffer(engine, &label_type)?;
        let mut stored = Vec::new();
        if params.csr {
            let room = stored.try_reserve_exact(params.batch_size);
            room.map_err(|_| no_batch(&data_type, "there is no memory for its rows"))?;
            stored.resize_with(params.batch_size, StoredRow::default);
        }
        let index = numbers(params.batch_size, std::iter::repeat_n(0, params.batch_size))?;
        let (skipped, made, pass, wrapped) = (Vec::new(), 0, 0, None);
        Ok(Batches {
            engine,
            samples,
            params,
            data_type,
            label_type,
            data,
            stored,
            label,
            index,
            skipped,
            made,
            pass,
            wrapped,
        })
    }

    /// Fills the rows from `first` on; how many rows there are then. They are fewer than a batch
    /// has at the end of the samples alone.
    fn fill(&mut self, first: usize) -> Result<usize, DataError> {
        let (mut row, mut ended) = (first, false);
        while row < self.params.batch_size && !ended {
            (row, ended) = match self.samples.computes() {
                true => self.engine.compute(|| self.fill_for_a_turn(row)),
                false => self.fill_for_a_turn(row),
            }?;
        }
        Ok(row)
    }

    /// Fills rows from `row` on for [`TURN`]; returns the next row, and whether the samples have
    /// ended.
    fn fill_for_a_turn(&mut self, mut row: usize) -> Result<(usize, bool), DataError> {
        let begin = Instant::now();
        let size = self.params.batch_size;
        let (data_row, label_row) = (self.data.len() / size, self.label.len() / size);
        while row < size && begin.elapsed() < TURN {
            let data = &mut self.data.as_mut_slice()[row * data_row..(row + 1) * data_row];
            let label = &mut self.label.as_mut_slice()[row * label_row..(row + 1) * label_row];
            match self.samples.next(data, label) {
                Ok(Some(number)) => {
                    self.index[row] = number;
                    if let Some(stored) = self.stored.get_mut(row) {
                        *stored = self.samples.stored();
                    }
                    row += 1;
                }
                Ok(None) => return Ok((row, true)),
                Err(SampleError::Sample(error)) if self.params.skip => self.skipped.push(error),
                Err(SampleError::Sample(error) | SampleError::Source(error)) => return Err(error),
            }
        }
        Ok((row, false))
    }

    fn batch(&self, pad: usize) -> Result<DataBatch, DataError> {
        let array = |tensor: &TensorType, bytes: &[u8]| {
            NDArray::from_bytes(self.engine, Context::cpu(0), tensor.clone(), bytes)
                .map_err(|error| no_batch(tensor, &error.message))
        };
        let data = match self.params.csr {
            true => join(self.engine, &self.data_type, &self.stored)
                .map_err(|error| no_batch(&self.data_type, &error.message))?,
            false => array(&self.data_type, self.data.as_slice())?,
        };
        Ok(DataBatch {
            data,
            label: array(&self.label_type, self.label.as_slice())?,
            pad,
            index: numbers(self.index.len(), self.index.iter().copied())?,
            inexact_label: self.inexact_label(pad),
        })
    }

    /// The first label that float32 may not have as it is in the file, except for those of the last
    /// `pad` samples.
    fn inexact_label(&self, pad: usize) -> Option<f32> {
        if self.params.label_dtype != DType::F32 {
            return None;
        }
        let size = self.params.batch_size;
        let labels = &self.label.as_slice()[..self.label.len() / size * (size - pad)];
        let labels = labels.as_chunks::<4>().0.iter().map(|label| f32::from_ne_bytes(*label));
        labels.filter(|label| label.is_finite()).find(|label| label.abs() >= EXACT)
    }

    /// Fills the rows from `first` on with samples from the beginning.
    fn wrap(&mut self, first: usize) -> Result<(), DataError> {
        self.samples.rewind(self.pass + 1)?;
        let size = self.params.batch_size;
        if self.fill(first)? < size {
            return Err(DataError::Argument(format!(
                "number of input must be bigger than batch size: {first} samples, even if each is used twice, do not \
                 fill a batch of {size}; use a smaller batch_size or round_batch=False"
            )));
        }
        self.wrapped = Some(self.made);
        Ok(())
    }
}

impl Producer for Batches {
    type Item = Made;
    type Error = DataError;

    fn next(&mut self) -> Result<Option<Made>, DataError> {
        if self.wrapped.is_some() {
            return Ok(None);
        }
        let size = self.params.batch_size;
        let rows = self.fill(0)?;
        let pad = size - rows;
        if rows == 0 || pad > 0 && self.params.last == LastBatch::Drop {
            let skipped = std::mem::take(&mut self.skipped);
            return Ok((!skipped.is_empty()).then_some(Made { batch: None, skipped }));
        }
        if pad > 0 && self.params.last == LastBatch::Wrap {
            self.wrap(rows)?;
        }
        self.made += 1;
        Ok(Some(Made { batch: Some(self.batch(pad)?), skipped: std::mem::take(&mut self.skipped) }))
    }

    fn reset(&mut self, delivered: u64) -> Result<(), DataError> {
        self.made = 0;
        self.skipped.clear();
        self.pass += 1;
        match self.wrapped.take() {
            Some(batch) if batch < delivered => Ok(()),
            _ => self.samples.rewind(self.pass),
        }
    }

    fn failure(problem: Problem) -> DataError {
        DataError::Prefetch(problem)
    }
}

/// Memory of the engine's pool, zeroed.
fn buffer(engine: &'static Engine, tensor: &TensorType) -> Result<Block, DataError> {
    let bytes = tensor.checked_bytes().ok_or_else(|| no_batch(tensor, "no memory is that large"))?;
    let mut block = engine.memory().alloc(bytes).map_err(|refusal| no_batch(tensor, &refusal.to_string()))?;
    block.as_mut_slice().fill(0);
    Ok(block)
}

/// Numbers of as many samples.
fn numbers(count: usize, values: impl Iterator<Item = u64>) -> Result<Vec<u64>, DataError> {
    let mut numbers = Vec::new();
    numbers
        .try_reserve_exact(count)
        .map_err(|_| DataError::Memory(format!("there is no memory for the numbers of {count} samples")))?;
    numbers.extend(values);
    Ok(numbers)
}

fn no_batch(tensor: &TensorType, reason: &str) -> DataError {
    DataError::Memory(format!("a batch of {tensor} could not be made: {reason}"))
}

/// Batches of samples, made ahead in the background. Shared by threads; each batch goes to one
/// caller.
pub struct BatchIter {
    prefetcher: Prefetcher<Batches>,
    skipped: AtomicU64,
    data_type: TensorType,
    label_type: TensorType,
}

impl BatchIter {
    pub(super) fn start(
        engine: &'static Engine,
        params: BatchParams,
        open: Box<OpenSamples>,
    ) -> Result<BatchIter, DataError> {
        let (data_type, label_type) = params.types();
        let prefetcher =
            Prefetcher::start(params.prefetch_buffer, move || Batches::new(engine, open(engine)?, params.clone()))?;
        Ok(BatchIter { prefetcher, skipped: AtomicU64::new(0), data_type, label_type })
    }

    /// Types of the data and the labels of every batch.
    pub fn types(&self) -> (&TensorType, &TensorType) {
        (&self.data_type, &self.label_type)
    }

    /// Returns the next batch, or `None` at the end of the epoch. An error comes after the batches
    /// before it and then with every call, until [`BatchIter::reset`].
    pub fn next(&self) -> Result<Option<DataBatch>, DataError> {
        self.next_with(&mut || true, &mut |_| {})
    }

    /// Returns the next batch like [`BatchIter::next`]. `poll` is called periodically while
    /// waiting; when it returns false the wait is abandoned with [`Problem::Interrupted`].
    /// `skipped` gets the problem of each sample that was left out before this batch's last.
    pub fn next_with(
        &self,
        poll: &mut dyn FnMut() -> bool,
        skipped: &mut dyn FnMut(DataError),
    ) -> Result<Option<DataBatch>, DataError> {
        while let Some(made) = self.prefetcher.next_with(poll)? {
            self.skipped.fetch_add(made.skipped.len() as u64, Ordering::Relaxed);
            made.skipped.into_iter().for_each(&mut *skipped);
            if let Some(batch) = made.batch {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Damaged samples that were left out in front of the last batch delivered, since the iterator
    /// was made.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Begins the next epoch, also after an error.
    pub fn reset(&self) -> Result<(), DataError> {
        self.prefetcher.reset()
    }
}
