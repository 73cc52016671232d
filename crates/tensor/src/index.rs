//! Copying parts of arrays: strided regions, and elements at listed positions.
//!
//! These move elements without looking at them; what a Python index means is decided by the caller.

use crate::array::allocate;
use crate::launch::device_of;
use crate::params::push_writing;
use crate::{DType, DeviceLaunch, Launch, NDArray, Shape, TensorType, device, launch, launch_on};
use mxrt_engine::{Access, Cost, FailureKind, OpError, OpSpec};
use smallvec::SmallVec;

/// Copies of up to this many bytes may run in the calling thread.
const SMALL_BYTES: usize = 64 * 1024;

/// Elements of an array at regular distances: the first one, and length and distance along each
/// axis.
///
/// A distance of 0 repeats an element, a negative one walks backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// position of the first element, counted in elements
    pub start: usize,
    /// length and distance of each axis
    pub axes: SmallVec<[(usize, isize); 6]>,
}

impl Region {
    /// All of an array, in its order.
    pub fn whole(shape: &Shape) -> Region {
        let axes = shape.iter().zip(shape.strides()).map(|(n, stride)| (*n, stride as isize)).collect();
        Region { start: 0, axes }
    }

    /// The extents of the region.
    pub fn shape(&self) -> Shape {
        self.axes.iter().map(|axis| axis.0).collect()
    }

    /// True when every element of the region is among the first `size` elements.
    fn fits(&self, size: usize) -> bool {
        if self.axes.iter().any(|axis| axis.0 == 0) {
            return true;
        }
        let (mut low, mut high) = (self.start as i128, self.start as i128);
        for (n, stride) in &self.axes {
            let reach = (*n as i128 - 1) * *stride as i128;
            if reach < 0 { low += reach } else { high += reach }
        }
        low >= 0 && high < size as i128
    }

    /// Calls `visit` with the position of every element, in order.
    pub(crate) fn each(&self, mut visit: impl FnMut(isize)) {
        let (n, step) = self.axes.last().copied().unwrap_or((1, 1));
        self.rows(|start| (0..n as isize).for_each(|i| visit(start as isize + i * step)));
    }

    /// Calls `visit` with the first position of each innermost row; returns length and distance
    /// within a row.
    fn rows(&self, mut visit: impl FnMut(usize)) -> (usize, isize) {
        let Some((&inner, outer)) = self.axes.split_last() else {
            visit(self.start);
            return (1, 1);
        };
        if self.axes.iter().any(|axis| axis.0 == 0) {
            return inner;
        }
        let mut index: SmallVec<[usize; 6]> = smallvec::smallvec![0; outer.len()];
        let mut position = self.start as isize;
        loop {
            visit(position as usize);
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return inner;
                }
                axis -= 1;
                let (n, stride) = outer[axis];
                index[axis] += 1;
                position += stride;
                if index[axis] < n {
                    break;
                }
                position -= stride * n as isize;
                index[axis] = 0;
            }
        }
    }
}

fn cost(bytes: usize) -> Cost {
    if bytes <= SMALL_BYTES { Cost::Small } else { Cost::Large }
}

fn outside(what: &str, array: &NDArray) -> OpError {
    OpError::new(FailureKind::Index, format!("{what} lies outside of the array of shape {}", array.shape()))
}

fn same_dtype(a: &NDArray, b: &NDArray) -> Result<(), OpError> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    let message = format!("elements of {} cannot be stored as {} without astype", b.dtype(), a.dtype());
    Err(OpError::new(FailureKind::Type, message))
}

/// Calls a generic function with an unsigned type as wide as the elements: copying does not look at
/// values.
macro_rules! by_width {
    ($dtype:expr, $f:ident ( $($arg:expr),* )) => {
        match $dtype.size() {
            1 => $f::<u8>($($arg),*),
            2 => $f::<u16>($($arg),*),
            4 => $f::<u32>($($arg),*),
            _ => $f::<u64>($($arg),*),
        }
    };
}

/// Refuses regions that do not fit each other or their arrays.
fn check_regions((target, into): (&NDArray, &Region), (source, from): (&NDArray, &Region)) -> Result<(), OpError> {
    same_dtype(target, source)?;
    if into.shape() != from.shape() {
        let message = format!("a region of shape {} cannot be filled from one of {}", into.shape(), from.shape());
        return Err(OpError::new(FailureKind::Shape, message));
    }
    if !into.fits(target.shape().size()) {
        return Err(outside("the region to be written", target));
    }
    if !from.fits(source.shape().size()) {
        return Err(outside("the region to be read", source));
    }
    Ok(())
}

/// Writes all elements of `target`, which is on the device of `source`.
#[cfg_attr(debug_assertions, track_caller)]
fn copy_all(target: &NDArray, into: Region, source: &NDArray, from: Region) -> Result<(), OpError> {
    let dtype = target.dtype();
    let bytes = into.shape().size().saturating_mul(dtype.size());
    let copy = move |to_bytes: &mut [u8], from_bytes: &[u8]| {
        by_width!(dtype, copy_elements(to_bytes, &into, from_bytes, &from));
        Ok(())
    };
    let (inputs, outputs) = ([source], [target]);
    if let Some(device) = target.context().device() {
        let work = DeviceLaunch::new(device, "copy", &inputs, &outputs);
        return launch_on(
            target.engine(),
            work,
            |_| (),
            move |(), _, ins, outs, _| copy(outs[0].bytes_mut(), ins[0].bytes()),
        );
    }
    let spec = Launch { name: "copy".into(), inputs: &inputs, outputs: &outputs, cost: cost(bytes) };
    launch(target.engine(), spec, move |_, ins, outs| copy(outs[0].bytes_mut(), ins[0].bytes()));
    Ok(())
}

/// Copies the elements of one region into another of the same extents; pushes the work and returns.
#[cfg_attr(debug_assertions, track_caller)]
pub fn copy_region(target: &NDArray, into: Region, source: &NDArray, from: Region) -> Result<(), OpError> {
    check_regions((target, &into), (source, &from))?;
    let dtype = target.dtype();
    let bytes = into.shape().size().saturating_mul(dtype.size());
    let all = into == Region::whole(target.shape());
    if source.context().device() != target.context().device() {
        let whole = all && from == Region::whole(source.shape());
        // A write to the host may have to pass the gates of parameters, which ops on a device do
        // not.
        if whole && target.context().device().is_some() {
            return device::copy(target, source);
        }
        return copy_region(target, into, &source.copy_to_context(target.context())?, from);
    }
    if let Some(device) = target.context().device()
        && device::copy_region_on(device, (target, &into), (source, &from), all)?
    {
        return Ok(());
    }
    // Writing all of it replaces what was there, failures included; a part keeps the rest.
    if all {
        return copy_all(target, into, source, from);
    }
    update(target, source, cost(bytes), move |to_bytes, from_bytes| {
        by_width!(dtype, copy_elements(to_bytes, &into, from_bytes, &from));
    })
}

/// Pushes work that changes a part of `target` and keeps the rest, and the failure it may hold.
#[cfg_attr(debug_assertions, track_caller)]
fn update(
    target: &NDArray,
    source: &NDArray,
    cost: Cost,
    change: impl FnOnce(&mut [u8], &[u8]) + Send + 'static,
) -> Result<(), OpError> {
    if let Some(device) = target.context().device() {
        return device::update_on(device, target, source, change);
    }
    let vars = [(source.var(), Access::Read), (target.var(), Access::Update)];
    let spec = OpSpec::new("assign", &vars).cost(cost).device(device_of(target));
    let (engine, written) = (target.engine(), [target]);
    let (target, source) = (target.clone(), source.clone());
    push_writing(engine, &written, spec, move |ctx| {
        let from = source.chunk.block()?;
        let to = target.chunk.block_to_change()?;
        // SAFETY: the running operation holds a grant of the source's variable, so no other thread
        // writes it; the view lies inside the block by construction of `NDArray`.
        let from_bytes = unsafe { std::slice::from_raw_parts(from.as_ptr().add(source.offset), source.nbytes()) };
        let aside = if source.overlaps(&target) {
            let mut copy = allocate(ctx.engine(), source.nbytes())?;
            copy.as_mut_slice()[..source.nbytes()].copy_from_slice(from_bytes);
            Some(copy)
        } else {
            None
        };
        let from_bytes = aside.as_ref().map_or(from_bytes, |copy| &copy.as_slice()[..source.nbytes()]);
        // SAFETY: the running operation holds the write grant of the target's variable, and the
        // bytes it reads are either elsewhere or were copied aside above; the view lies inside the
        // block by construction of `NDArray`.
        let to_bytes = unsafe { std::slice::from_raw_parts_mut(to.as_ptr().add(target.offset), target.nbytes()) };
        change(to_bytes, from_bytes);
        Ok(())
    });
    Ok(())
}

fn copy_elements<T: bytemuck::Pod>(to_bytes: &mut [u8], into: &Region, from_bytes: &[u8], from: &Region) {
    let to: &mut [T] = bytemuck::cast_slice_mut(to_bytes);
    let source: &[T] = bytemuck::cast_slice(from_bytes);
    let mut starts: Vec<usize> = Vec::new();
    let (_, from_step) = from.rows(|start| starts.push(start));
    let mut starts = starts.into_iter();
    let (n, to_step) = into.axes.last().copied().unwrap_or((1, 1));
    into.rows(|start| {
        let Some(first) = starts.next() else { return };
        if to_step == 1 && from_step == 1 {
            to[start..start + n].copy_from_slice(&source[first..first + n]);
            return;
        }
        let (mut t, mut s) = (start as isize, first as isize);
        for _ in 0..n {
            to[t as usize] = source[s as usize];
            t += to_step;
            s += from_step;
        }
    });
}

/// A new array of the given shape whose elements are those of `source` at the given positions.
#[cfg_attr(debug_assertions, track_caller)]
pub fn gather(source: &NDArray, positions: Vec<usize>, shape: Shape) -> Result<NDArray, OpError> {
    check_positions(source, &positions, &shape)?;
    let dtype = source.dtype();
    let out = NDArray::new(source.engine(), source.context(), TensorType::new(dtype, shape))?;
    if let Some(device) = source.context().device() {
        let places = (0..positions.len(), positions.iter().copied());
        if device::copy_places_on(device, (&out, places.0), (source, places.1), true)? {
            return Ok(out);
        }
        let (inputs, outputs) = ([source], [&out]);
        let work = DeviceLaunch::new(device, "gather", &inputs, &outputs);
        launch_on(
            source.engine(),
            work,
            |_| (),
            move |(), _, ins, outs, _| {
                by_width!(dtype, gather_elements(outs[0].bytes_mut(), ins[0].bytes(), &positions));
                Ok(())
            },
        )?;
        return Ok(out);
    }
    let spec = Launch {
        name: "gather".into(),
        inputs: &[source],
        outputs: &[&out],
        cost: cost(positions.len() * dtype.size()),
    };
    launch(source.engine(), spec, move |_, ins, outs| {
        by_width!(dtype, gather_elements(outs[0].bytes_mut(), ins[0].bytes(), &positions));
        Ok(())
    });
    Ok(out)
}

fn gather_elements<T: bytemuck::Pod>(to: &mut [u8], from: &[u8], positions: &[usize]) {
    let source: &[T] = bytemuck::cast_slice(from);
    for (to, position) in bytemuck::cast_slice_mut::<u8, T>(to).iter_mut().zip(positions) {
        *to = source[*position];
    }
}

/// Stores the elements of `source`, in order, at the given positions of `target`.
#[cfg_attr(debug_assertions, track_caller)]
pub fn scatter(target: &NDArray, positions: Vec<usize>, source: &NDArray) -> Result<(), OpError> {
    same_dtype(target, source)?;
    check_positions(target, &positions, source.shape())?;
    if source.context().device() != target.context().device() {
        return scatter(target, positions, &source.copy_to_context(target.context())?);
    }
    if let Some(device) = target.context().device() {
        let places = (positions.iter().copied(), 0..positions.len());
        if device::copy_places_on(device, (target, places.0), (source, places.1), false)? {
            return Ok(());
        }
    }
    let dtype: DType = target.dtype();
    update(target, source, cost(positions.len() * dtype.size()), move |to, from| {
        by_width!(dtype, scatter_elements(to, from, &positions));
    })
}

fn scatter_elements<T: bytemuck::Pod>(to: &mut [u8], from: &[u8], positions: &[usize]) {
    let target: &mut [T] = bytemuck::cast_slice_mut(to);
    for (position, value) in positions.iter().zip(bytemuck::cast_slice::<u8, T>(from)) {
        target[*position] = *value;
    }
}

fn check_positions(array: &NDArray, positions: &[usize], shape: &Shape) -> Result<(), OpError> {
    if shape.checked_size() != Some(positions.len()) {
        let message = format!("{} positions do not make an array of shape {shape}", positions.len());
        return Err(OpError::new(FailureKind::Shape, message));
    }
    let size = array.shape().size();
    match positions.iter().find(|p| **p >= size) {
        Some(position) => Err(outside(&format!("position {position}"), array)),
        None => Ok(()),
    }
}
