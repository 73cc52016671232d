//! Memory of arrays, for the operations that read and write them.

use crate::array::{Chunk, allocate};
use crate::memory::Memory;
use crate::{NDArray, TensorMut, TensorRef, TensorType};
use mxrt_engine::memory::Block;
use mxrt_engine::{Engine, FailureKind, OpError};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The bytes of an array. With its type this is the array, but without a claim on its value.
#[derive(Clone)]
pub(crate) struct Place {
    pub chunk: Arc<Chunk>,
    pub offset: usize,
}

/// An array of an operation.
pub(crate) type Typed<'a> = (&'a Place, &'a TensorType);

impl Place {
    pub fn of(array: &NDArray) -> Place {
        Place { chunk: array.chunk.clone(), offset: array.offset }
    }

    /// Address of the first byte; an error if an array of this type would not lie inside the block.
    fn address(&self, block: &Memory, tensor: &TensorType) -> Result<*mut u8, OpError> {
        match self.offset.checked_add(tensor.bytes()) {
            // SAFETY: the offset is inside the block.
            Some(end) if end <= block.len() => Ok(unsafe { block.as_ptr().add(self.offset) }),
            _ => Err(OpError::new(FailureKind::Operator, format!("an array of {tensor} was pushed as another type"))),
        }
    }

    /// Returns the array for reading. Called only while the running operation holds a grant of the
    /// chunk's variable.
    pub fn readable<'a>(&'a self, tensor: &'a TensorType) -> Result<TensorRef<'a>, OpError> {
        let first = self.address(self.chunk.block()?, tensor)?;
        // SAFETY: the running operation named this chunk's variable, so no other thread writes it;
        // what the operation itself writes does not overlap (see `Aside`); the bytes lie inside the
        // block (see `address`).
        let bytes = unsafe { std::slice::from_raw_parts(first, tensor.bytes()) };
        Ok(TensorRef::new(tensor.dtype, &tensor.shape, bytes))
    }

    /// Returns the array for writing. Called only while the running operation holds the write grant
    /// of the chunk's variable.
    fn writable<'a>(&'a self, tensor: &'a TensorType) -> Result<TensorMut<'a>, OpError> {
        let whole = self.offset == 0 && tensor.bytes() == self.chunk.bytes;
        let block = if whole { self.chunk.block_to_overwrite()? } else { self.chunk.block_to_change()? };
        let first = self.address(block, tensor)?;
        // SAFETY: the running operation holds the write grant of this chunk's variable, so no other
        // thread reads or writes it, and `Aside` hands out each byte at most once; the bytes lie
        // inside the block (see `address`).
        let bytes = unsafe { std::slice::from_raw_parts_mut(first, tensor.bytes()) };
        Ok(TensorMut::new(tensor.dtype, &tensor.shape, bytes))
    }
}

/// Returns an array for reading. Called only while the running operation holds a grant of the
/// array's variable, or of the gate that guards it.
pub(crate) fn readable(array: &NDArray) -> Result<TensorRef<'_>, OpError> {
    let block = array.chunk.block()?;
    // SAFETY: the running operation named this array's variable, or the gate in front of it, so no
    // other thread writes it; what the operation itself writes does not overlap (see `Aside`); the
    // view lies inside the block by construction of `NDArray`.
    let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr().add(array.offset), array.nbytes()) };
    Ok(TensorRef::new(array.dtype(), array.shape(), bytes))
}

/// Bytes of a storage.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    chunk: &'a Arc<Chunk>,
    first: usize,
    bytes: usize,
}

impl<'a> Span<'a> {
    pub fn of(array: &'a NDArray) -> Self {
        Span { chunk: &array.chunk, first: array.offset, bytes: array.nbytes() }
    }

    pub fn overlaps(self, other: Span<'_>) -> bool {
        Arc::ptr_eq(self.chunk, other.chunk)
            && self.first < other.first + other.bytes
            && other.first < self.first + self.bytes
    }
}

impl<'a> From<Typed<'a>> for Span<'a> {
    fn from((place, tensor): Typed<'a>) -> Self {
        Span { chunk: &place.chunk, first: place.offset, bytes: tensor.bytes() }
    }
}

/// Outputs that are compared each with each.
const FEW_OUTPUTS: usize = 16;

/// Memory in the place of outputs that overlap what is read, or each other; one entry for every
/// output.
#[derive(Default)]
pub(crate) struct Aside(SmallVec<[Option<Block>; 2]>);

impl Aside {
    /// Called once, before anything is read or written.
    pub fn separate<'a>(
        engine: &'static Engine,
        read: impl Iterator<Item = Span<'a>> + Clone,
        outputs: &[Typed<'a>],
    ) -> Result<Aside, OpError> {
        let mut memory = SmallVec::with_capacity(outputs.len());
        if outputs.len() <= FEW_OUTPUTS {
            for (i, output) in outputs.iter().enumerate() {
                let before = outputs[..i].iter().map(|other| Span::from(*other));
                let shared = read.clone().chain(before).any(|other| other.overlaps(Span::from(*output)));
                memory.push(if shared { Some(allocate(engine, output.1.bytes())?) } else { None });
            }
            return Ok(Aside(memory));
        }
        // Each with each would be quadratic.
        let mut used: HashMap<*const Chunk, Vec<Span<'a>>> = HashMap::new();
        read.for_each(|span| used.entry(Arc::as_ptr(span.chunk)).or_default().push(span));
        for output in outputs {
            let span = Span::from(*output);
            let others = used.entry(Arc::as_ptr(span.chunk)).or_default();
            let shared = others.iter().any(|other| other.overlaps(span));
            others.push(span);
            memory.push(if shared { Some(allocate(engine, output.1.bytes())?) } else { None });
        }
        Ok(Aside(memory))
    }

    /// Returns the memory for the outputs. Called only while the running operation holds their
    /// grants.
    pub fn writable<'a>(&'a mut self, outputs: &[Typed<'a>]) -> Result<SmallVec<[TensorMut<'a>; 2]>, OpError> {
        let view = |((place, tensor), aside): (&Typed<'a>, &'a mut Option<Block>)| match aside {
            Some(block) => Ok(TensorMut::new(tensor.dtype, &tensor.shape, &mut block.as_mut_slice()[..tensor.bytes()])),
            None => place.writable(tensor),
        };
        outputs.iter().zip(&mut self.0).map(view).collect()
    }

    /// Copies what was computed aside.
    pub fn finish(self, outputs: &[Typed<'_>]) -> Result<(), OpError> {
        for ((place, tensor), aside) in outputs.iter().zip(&self.0) {
            if let Some(block) = aside {
                place.writable(tensor)?.bytes_mut().copy_from_slice(&block.as_slice()[..tensor.bytes()]);
            }
        }
        Ok(())
    }
}
