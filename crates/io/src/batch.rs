//! From samples to batches: what all data iterators do alike.

use crate::DataError;
use crate::prefetch::{Prefetcher, Problem, Producer};
use mxrt_engine::Engine;
use mxrt_tensor::{Context, DType, NDArray, Shape, TensorType};

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
}

/// A sequence of samples that can be begun again.
pub trait Samples: Send + 'static {
    /// Writes the next sample and its label, as elements of the type that was promised, and gives its number; `None` at
    /// the end. On an error the content of both buffers is arbitrary.
    fn next(&mut self, data: &mut [u8], label: &mut [u8]) -> Result<Option<u64>, DataError>;

    /// Goes back to the first sample.
    fn rewind(&mut self) -> Result<(), DataError>;
}

/// How samples become batches.
#[derive(Clone, Debug)]
pub struct BatchParams {
    /// samples in a batch
    pub batch_size: usize,
    /// whether a last, short batch is filled up from the beginning
    pub round_batch: bool,
    /// batches made ahead
    pub prefetch_buffer: usize,
    /// element type of data and labels
    pub dtype: DType,
    /// extents of one sample
    pub data_shape: Shape,
    /// extents of one label
    pub label_shape: Shape,
}

/// Joins samples into batches.
struct Batches<S> {
    engine: &'static Engine,
    samples: S,
    params: BatchParams,
    data_type: TensorType,
    label_type: TensorType,
    /// Content of the batch in the making. Rows that a short last batch does not fill keep what they held.
    data: Vec<u8>,
    label: Vec<u8>,
    index: Vec<u64>,
    /// Batches made since the last reset.
    made: u64,
    /// The number of the batch that was filled up from the beginning: the epoch ends behind it, and the next one
    /// begins where it ended.
    wrapped: Option<u64>,
}

impl<S: Samples> Batches<S> {
    fn new(engine: &'static Engine, samples: S, params: BatchParams) -> Result<Batches<S>, DataError> {
        let data_type = batch_type(&params, &params.data_shape);
        // MXNet gives single labels without an axis of their own.
        let flat = params.label_shape[..] == [1];
        let label_type = batch_type(&params, if flat { &[] } else { &params.label_shape });
        let index = vec![0; params.batch_size];
        let (data, label) = (buffer(&data_type)?, buffer(&label_type)?);
        Ok(Batches { engine, samples, params, data_type, label_type, data, label, index, made: 0, wrapped: None })
    }

    fn fill(&mut self, row: usize) -> Result<bool, DataError> {
        let size = self.params.batch_size;
        let (data_row, label_row) = (self.data.len() / size, self.label.len() / size);
        let data = &mut self.data[row * data_row..(row + 1) * data_row];
        let label = &mut self.label[row * label_row..(row + 1) * label_row];
        match self.samples.next(data, label)? {
            Some(number) => {
                self.index[row] = number;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn batch(&self, pad: usize) -> Result<DataBatch, DataError> {
        let array = |tensor: &TensorType, bytes: &[u8]| {
            NDArray::from_bytes(self.engine, Context::cpu(0), tensor.clone(), bytes)
                .map_err(|error| DataError::Memory(error.to_string()))
        };
        Ok(DataBatch {
            data: array(&self.data_type, &self.data)?,
            label: array(&self.label_type, &self.label)?,
            pad,
            index: self.index.clone(),
        })
    }

    /// Fills the rows from `first` on with samples from the beginning.
    fn wrap(&mut self, first: usize) -> Result<(), DataError> {
        self.samples.rewind()?;
        for row in first..self.params.batch_size {
            if !self.fill(row)? {
                let size = self.params.batch_size;
                return Err(DataError::Argument(format!(
                    "number of input must be bigger than batch size: {first} samples, even if each is used twice, do \
                     not fill a batch of {size}; use a smaller batch_size or round_batch=False"
                )));
            }
        }
        self.wrapped = Some(self.made);
        Ok(())
    }
}

impl<S: Samples> Producer for Batches<S> {
    type Item = DataBatch;
    type Error = DataError;

    fn next(&mut self) -> Result<Option<DataBatch>, DataError> {
        if self.wrapped.is_some() {
            return Ok(None);
        }
        let size = self.params.batch_size;
        let mut rows = 0;
        while rows < size && self.fill(rows)? {
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let pad = size - rows;
        if pad > 0 && self.params.round_batch {
            self.wrap(rows)?;
        }
        self.made += 1;
        self.batch(pad).map(Some)
    }

    fn reset(&mut self, delivered: u64) -> Result<(), DataError> {
        self.made = 0;
        match self.wrapped.take() {
            Some(batch) if batch < delivered => Ok(()),
            _ => self.samples.rewind(),
        }
    }

    fn failure(problem: Problem) -> DataError {
        DataError::Prefetch(problem)
    }
}

fn batch_type(params: &BatchParams, sample: &[usize]) -> TensorType {
    let shape = std::iter::once(params.batch_size).chain(sample.iter().copied()).collect::<Shape>();
    TensorType { dtype: params.dtype, shape }
}

fn buffer(tensor: &TensorType) -> Result<Vec<u8>, DataError> {
    let too_large = || DataError::Memory(format!("a batch of {tensor} is larger than the memory"));
    let bytes = tensor.checked_bytes().ok_or_else(too_large)?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| too_large())?;
    buffer.resize(bytes, 0);
    Ok(buffer)
}

/// Batches of samples, made ahead in the background. Shared by threads; each batch goes to one caller.
pub struct BatchIter<S: Samples> {
    prefetcher: Prefetcher<Batches<S>>,
}

impl<S: Samples> BatchIter<S> {
    /// Starts reading. `make` opens the samples (again in a forked process that goes on iterating).
    pub fn start(
        engine: &'static Engine,
        params: BatchParams,
        make: impl Fn() -> Result<S, DataError> + Send + Sync + 'static,
    ) -> Result<BatchIter<S>, DataError> {
        for (name, value) in [("batch_size", params.batch_size), ("prefetch_buffer", params.prefetch_buffer)] {
            if value == 0 {
                return Err(DataError::Argument(format!("{name} must be a positive number, not 0")));
            }
        }
        let prefetcher =
            Prefetcher::start(params.prefetch_buffer, move || Batches::new(engine, make()?, params.clone()))?;
        Ok(BatchIter { prefetcher })
    }

    /// The next batch, or `None` at the end of the epoch. An error comes behind the batches before it and then with
    /// every call, until [`BatchIter::reset`].
    pub fn next(&self) -> Result<Option<DataBatch>, DataError> {
        self.prefetcher.next()
    }

    /// As [`BatchIter::next`]. `poll` is called now and then while waiting; when it returns false the wait is given up
    /// with [`Problem::Interrupted`].
    pub fn next_with(&self, poll: &mut dyn FnMut() -> bool) -> Result<Option<DataBatch>, DataError> {
        self.prefetcher.next_with(poll)
    }

    /// Begins the next epoch; also the way out of an error.
    pub fn reset(&self) -> Result<(), DataError> {
        self.prefetcher.reset()
    }
}
