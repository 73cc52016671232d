//! Pushing work that reads and writes arrays as they are stored.

use super::slot::{replace, stored};
use super::{CsrRef, RowSparseRef, SparseContent, StorageType};
use crate::launch::{Launch, device_of, write_access};
use crate::params::push_writing;
use crate::place::{Aside, Place, Span, Typed};
use crate::{NDArray, Shape, TensorMut, TensorRef, TensorType};
use mxrt_engine::{Access, Engine, FailureKind, OpError, OpSpec, RunCtx};
use smallvec::SmallVec;

/// An input of an operation, as it is stored.
#[derive(Clone, Copy)]
pub enum StoredInput<'a> {
    /// a dense array
    Dense(TensorRef<'a>),
    /// a csr matrix
    Csr(CsrRef<'a>),
    /// an array of which some rows are stored
    RowSparse(RowSparseRef<'a>),
}

impl<'a> StoredInput<'a> {
    /// The extents of the array.
    pub fn shape(&self) -> &'a Shape {
        match self {
            StoredInput::Dense(tensor) => tensor.shape,
            StoredInput::Csr(matrix) => matrix.shape,
            StoredInput::RowSparse(array) => array.shape,
        }
    }

    /// The stored values.
    pub fn values(&self) -> TensorRef<'a> {
        match self {
            StoredInput::Dense(tensor) => *tensor,
            StoredInput::Csr(matrix) => matrix.values,
            StoredInput::RowSparse(array) => array.values,
        }
    }

    /// The storage type.
    pub fn storage(&self) -> StorageType {
        match self {
            StoredInput::Dense(_) => StorageType::Default,
            StoredInput::Csr(_) => StorageType::Csr,
            StoredInput::RowSparse(_) => StorageType::RowSparse,
        }
    }
}

/// An output of an operation: memory to fill, or the place for a sparse content.
pub enum StoredOutput<'a> {
    /// a dense array, to be filled
    Dense(TensorMut<'a>),
    /// a sparse array, whose content the operation makes
    Sparse {
        /// storage type to make
        storage: StorageType,
        /// type of the array
        tensor: &'a TensorType,
        /// the content that the operation made
        made: Option<SparseContent>,
    },
}

/// Pushes `body`, which sees the contents of the inputs as they are stored, fills dense outputs, and
/// makes the contents of sparse ones. As [`crate::launch`] in everything else.
#[cfg_attr(debug_assertions, track_caller)]
pub fn launch_stored<F>(engine: &'static Engine, launch: Launch<'_>, body: F)
where
    F: FnOnce(&RunCtx<'_>, &[StoredInput<'_>], &mut [StoredOutput<'_>]) -> Result<(), OpError> + Send + 'static,
{
    let mut vars: SmallVec<[_; 8]> = launch.inputs.iter().map(|a| (a.var(), Access::Read)).collect();
    vars.extend(launch.outputs.iter().map(|a| (a.var(), write_access(a))));
    let device = launch.inputs.iter().chain(launch.outputs).next();
    let device = device.map_or(mxrt_engine::DeviceId::cpu(0), |a| device_of(a));
    let spec = OpSpec::new(launch.name, &vars).cost(launch.cost).device(device);
    // Inputs are held until it has run: results that nobody wants any more are wanted here.
    let inputs: SmallVec<[NDArray; 3]> = launch.inputs.iter().map(|a| (*a).clone()).collect();
    let outputs: SmallVec<[Output; 1]> = launch.outputs.iter().map(|a| Output::of(a)).collect();
    push_writing(engine, launch.outputs, spec, move |ctx| run(ctx, &inputs, &outputs, body));
}

/// An output without a claim on its value.
struct Output {
    place: Place,
    tensor: TensorType,
    /// the array itself, if it is sparse
    sparse: Option<NDArray>,
}

impl Output {
    fn of(array: &NDArray) -> Output {
        let sparse = array.is_sparse().then(|| array.without_interest());
        Output { place: Place::of(array), tensor: array.tensor_type(), sparse }
    }
}

fn run<F>(ctx: &RunCtx<'_>, inputs: &[NDArray], outputs: &[Output], body: F) -> Result<(), OpError>
where
    F: FnOnce(&RunCtx<'_>, &[StoredInput<'_>], &mut [StoredOutput<'_>]) -> Result<(), OpError>,
{
    let dense = outputs.iter().filter(|output| output.sparse.is_none());
    let dense: SmallVec<[Typed<'_>; 2]> = dense.map(|output| (&output.place, &output.tensor)).collect();
    let read = inputs.iter().filter(|input| !input.is_sparse()).map(Span::of);
    let mut aside = Aside::separate(ctx.engine(), read, &dense)?;
    let mut made: SmallVec<[Option<SparseContent>; 2]> = SmallVec::new();
    {
        let views = inputs.iter().map(stored).collect::<Result<SmallVec<[StoredInput<'_>; 3]>, OpError>>()?;
        let mut memory = aside.writable(&dense)?.into_iter();
        let mut targets: SmallVec<[StoredOutput<'_>; 2]> = SmallVec::new();
        for output in outputs {
            targets.push(match &output.sparse {
                Some(array) => {
                    StoredOutput::Sparse { storage: array.storage_type(), tensor: &output.tensor, made: None }
                }
                None => StoredOutput::Dense(memory.next().ok_or_else(unfilled)?),
            });
        }
        body(ctx, &views, &mut targets)?;
        for target in targets {
            if let StoredOutput::Sparse { made: content, .. } = target {
                made.push(content);
            }
        }
    }
    // Nothing that was read is referred to any more.
    aside.finish(&dense)?;
    let sparse = outputs.iter().filter_map(|output| output.sparse.as_ref());
    for (array, content) in sparse.zip(made) {
        replace(array, content.ok_or_else(unfilled)?)?;
    }
    Ok(())
}

fn unfilled() -> OpError {
    OpError::new(FailureKind::NotCompleted, "the operation ended without one of its results")
}
