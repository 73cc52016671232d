//! cuDNN for tests: the same library under the name `libcudnn.so.9`. It computes convolutions of
//! planes in the memory of the simulated GPUs. A handle belongs to a context. Two threads that use one
//! concurrently end the process.

use crate::libraries::{FakeElements, destroy, library, make, note, submit};
use crate::state::{CURRENT, number};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

const BAD_PARAM: c_int = 2000;
const NOT_SUPPORTED: c_int = 3000;
const EXECUTION_FAILED: c_int = 5000;
/// Memory that the algorithms use.
const WORKSPACE: usize = 8192;

struct FakeDnn {
    context: usize,
    stream: usize,
    busy: AtomicBool,
}

/// Holds a handle for a call.
struct Held<'a>(&'a FakeDnn);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::SeqCst);
    }
}

/// # Safety
/// Null, or a handle.
unsafe fn held<'a>(at: *const FakeDnn) -> Result<Held<'a>, c_int> {
    // SAFETY: contract.
    let handle: &FakeDnn = unsafe { known(at)? };
    if handle.context != CURRENT.get() {
        return Err(BAD_PARAM);
    }
    if handle.busy.swap(true, Ordering::SeqCst) {
        eprintln!("the stand-in of cuDNN: two threads use a handle");
        std::process::abort();
    }
    Ok(Held(handle))
}

/// Images or weights: four extents and the order in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Array {
    elements: Option<FakeElements>,
    channels_last: bool,
    shape: [i64; 4],
}

impl Array {
    const NONE: Array = Array { elements: None, channels_last: false, shape: [0; 4] };

    fn set(&mut self, layout: c_int, elements: c_int, shape: [c_int; 4]) -> Result<(), c_int> {
        let elements = match elements {
            0 => FakeElements::Single,
            2 => FakeElements::Half,
            _ => return Err(NOT_SUPPORTED),
        };
        if !matches!(layout, 0 | 1) || shape.iter().any(|extent| *extent <= 0) {
            return Err(BAD_PARAM);
        }
        *self = Array { elements: Some(elements), channels_last: layout == 1, shape: shape.map(i64::from) };
        Ok(())
    }

    /// The place of an element: image or filter, channel, row, column.
    fn place(&self, [n, c, y, x]: [i64; 4]) -> i64 {
        let [_, channels, rows, columns] = self.shape;
        match self.channels_last {
            true => ((n * rows + y) * columns + x) * channels + c,
            false => ((n * channels + c) * rows + y) * columns + x,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    pad: [i64; 2],
    stride: [i64; 2],
    dilate: [i64; 2],
    groups: i64,
    math: c_int,
}

#[derive(Clone, Copy)]
struct Activation {
    kind: c_int,
}

#[repr(C)]
struct Rated {
    algorithm: c_int,
    status: c_int,
    time: f32,
    memory: usize,
    determinism: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

/// # Safety
/// Null, or an object that was not destroyed.
unsafe fn known<'a, T>(at: *const T) -> Result<&'a T, c_int> {
    // SAFETY: contract.
    unsafe { at.as_ref() }.ok_or(BAD_PARAM)
}

/// # Safety
/// The contract of `known`, and no other thread uses it.
unsafe fn changed<'a, T>(at: *mut T) -> Result<&'a mut T, c_int> {
    // SAFETY: contract.
    unsafe { at.as_mut() }.ok_or(BAD_PARAM)
}

/// Images, weights, windows, results.
#[derive(Clone, Copy)]
struct Convolution {
    x: Array,
    w: Array,
    windows: Windows,
    y: Array,
}

impl Convolution {
    /// # Safety
    /// The contract of `known`.
    unsafe fn of(x: *const Array, w: *const Array, c: *const Windows, y: *const Array) -> Result<Convolution, c_int> {
        // SAFETY: contract.
        let made = unsafe { Convolution { x: *known(x)?, w: *known(w)?, windows: *known(c)?, y: *known(y)? } };
        let Convolution { x, w, windows, y } = made;
        let alike = [w, y].iter().all(|a| a.elements == x.elements && a.channels_last == x.channels_last);
        let extent = |axis: usize| {
            let covered = windows.dilate[axis] * (w.shape[axis + 2] - 1) + 1;
            (x.shape[axis + 2] + 2 * windows.pad[axis] - covered) / windows.stride[axis] + 1
        };
        let fits = y.shape == [x.shape[0], w.shape[0], extent(0), extent(1)]
            && w.shape[1] * windows.groups == x.shape[1]
            && w.shape[0] % windows.groups == 0;
        let math = x.elements == Some(FakeElements::Single) || windows.math == 1;
        if alike && fits && math && x.elements.is_some() { Ok(made) } else { Err(BAD_PARAM) }
    }

    fn sum(&self, at: [usize; 2], [n, f, row, column]: [i64; 4]) -> f32 {
        let Convolution { x, w, windows, .. } = self;
        let [_, channels, rows, columns] = w.shape;
        let (elements, first) =
            (x.elements.unwrap_or(FakeElements::Single), f / (w.shape[0] / windows.groups) * channels);
        let mut sum = 0.0;
        for (c, i, j) in (0..channels).flat_map(|c| (0..rows).flat_map(move |i| (0..columns).map(move |j| (c, i, j)))) {
            let y = row * windows.stride[0] - windows.pad[0] + i * windows.dilate[0];
            let z = column * windows.stride[1] - windows.pad[1] + j * windows.dilate[1];
            if (0..x.shape[2]).contains(&y) && (0..x.shape[3]).contains(&z) {
                // SAFETY: the caller's promise to the library: arrays of these extents.
                sum += unsafe {
                    elements.read(at[0], x.place([n, first + c, y, z])) * elements.read(at[1], w.place([f, c, i, j]))
                };
            }
        }
        sum
    }
}

/// End of a convolution: address and factor of the residual, address of the bias, positive part.
#[derive(Clone, Copy)]
struct End {
    residual: (usize, f32),
    bias: usize,
    relu: bool,
}

/// Submits a convolution.
fn convolve(
    handle: &FakeDnn,
    of: Convolution,
    [x, w, y]: [*const c_void; 3],
    end: End,
    (memory, bytes): (*mut c_void, usize),
) -> Result<(), c_int> {
    let [x, w, y] = [x, w, y].map(|at| at.expose_provenance());
    if [x, w, y].iter().any(|at| *at == 0 || at % 16 != 0) || memory.is_null() || bytes < WORKSPACE {
        return Err(BAD_PARAM);
    }
    let memory = memory.expose_provenance();
    let work = move || {
        let elements = of.y.elements.unwrap_or(FakeElements::Single);
        let [images, filters, rows, columns] = of.y.shape;
        for number in 0..images * filters * rows * columns {
            let (n, rest) = (number / (filters * rows * columns), number % (filters * rows * columns));
            let at = [n, rest / (rows * columns), rest / columns % rows, rest % columns];
            let mut made = of.sum([x, w], at);
            // SAFETY: the caller's promise to the library: arrays of these extents.
            unsafe {
                if end.bias != 0 {
                    made += elements.read(end.bias, at[1]);
                }
                if end.residual.1 != 0.0 {
                    made += end.residual.1 * elements.read(end.residual.0, of.y.place(at));
                }
                elements.write(y, of.y.place(at), if end.relu { made.max(0.0) } else { made });
            }
        }
        // SAFETY: memory of the size that the algorithm asked for.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(memory).write_bytes(0xff, WORKSPACE) };
    };
    submit(handle.stream, work).map_err(|_| EXECUTION_FAILED)
}

/// `cudnnGetVersion`.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetVersion() -> usize {
    number("STANDIN_CUDNN", 91_300) as usize
}

/// `cudnnGetCudartVersion`.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetCudartVersion() -> usize {
    13_000
}

library! {
    fn cudnnCreate(made: *mut *mut FakeDnn) {
        note("create cuDNN");
        // SAFETY: the caller's variable.
        unsafe { make(made, FakeDnn { context: CURRENT.get(), stream: 0, busy: AtomicBool::new(false) }) }
    }
    fn cudnnSetStream(at: *mut FakeDnn, stream: *mut c_void) {
        // SAFETY: the caller's handle.
        unsafe { changed(at)? }.stream = stream.expose_provenance();
        Ok(())
    }
    // SAFETY: the caller's variable.
    fn cudnnCreateTensorDescriptor(made: *mut *mut Array) { unsafe { make(made, Array::NONE) } }
    // SAFETY: the caller's object.
    fn cudnnDestroyTensorDescriptor(at: *mut Array) { unsafe { destroy(at) } }
    fn cudnnSetTensor4dDescriptor(
        at: *mut Array, layout: c_int, elements: c_int, n: c_int, c: c_int, h: c_int, w: c_int
    ) {
        // SAFETY: the caller's object.
        unsafe { changed(at)? }.set(layout, elements, [n, c, h, w])
    }
    // SAFETY: the caller's variable.
    fn cudnnCreateFilterDescriptor(made: *mut *mut Array) { unsafe { make(made, Array::NONE) } }
    // SAFETY: the caller's object.
    fn cudnnDestroyFilterDescriptor(at: *mut Array) { unsafe { destroy(at) } }
    fn cudnnSetFilter4dDescriptor(
        at: *mut Array, elements: c_int, layout: c_int, k: c_int, c: c_int, h: c_int, w: c_int
    ) {
        // SAFETY: the caller's object.
        unsafe { changed(at)? }.set(layout, elements, [k, c, h, w])
    }
    // SAFETY: the caller's variable.
    fn cudnnCreateConvolutionDescriptor(made: *mut *mut Windows) { unsafe { make(made, Windows::default()) } }
    // SAFETY: the caller's object.
    fn cudnnDestroyConvolutionDescriptor(at: *mut Windows) { unsafe { destroy(at) } }
    fn cudnnSetConvolution2dDescriptor(
        at: *mut Windows, pad_h: c_int, pad_w: c_int, stride_h: c_int, stride_w: c_int, dilate_h: c_int,
        dilate_w: c_int, mode: c_int, computed: c_int
    ) {
        let [pad, stride, dilate] =
            [[pad_h, pad_w], [stride_h, stride_w], [dilate_h, dilate_w]].map(|two| two.map(i64::from));
        if mode != 1 || computed != 0 || stride.iter().chain(&dilate).any(|step| *step < 1) {
            return Err(BAD_PARAM);
        }
        // SAFETY: the caller's object.
        *unsafe { changed(at)? } = Windows { pad, stride, dilate, groups: 1, math: 0 };
        Ok(())
    }
    fn cudnnSetConvolutionGroupCount(at: *mut Windows, groups: c_int) {
        // SAFETY: the caller's object.
        unsafe { changed(at)? }.groups = groups.into();
        Ok(())
    }
    fn cudnnSetConvolutionMathType(at: *mut Windows, math: c_int) {
        // SAFETY: the caller's object.
        unsafe { changed(at)? }.math = math;
        Ok(())
    }
    // SAFETY: the caller's variable.
    fn cudnnCreateActivationDescriptor(made: *mut *mut Activation) { unsafe { make(made, Activation { kind: 0 }) } }
    // SAFETY: the caller's object.
    fn cudnnDestroyActivationDescriptor(at: *mut Activation) { unsafe { destroy(at) } }
    fn cudnnSetActivationDescriptor(at: *mut Activation, kind: c_int, nan: c_int, _coefficient: f64) {
        if !matches!((kind, nan), (1 | 5, 1)) {
            return Err(NOT_SUPPORTED);
        }
        // SAFETY: the caller's object.
        unsafe { changed(at)? }.kind = kind;
        Ok(())
    }
    fn cudnnGetConvolutionForwardAlgorithm_v7(
        handle: *const FakeDnn, x: *const Array, w: *const Array, windows: *const Windows, y: *const Array,
        wanted: c_int, count: *mut c_int, found: *mut Rated
    ) {
        // SAFETY: the caller's objects.
        let (_held, of) = unsafe { (held(handle)?, Convolution::of(x, w, windows, y)?) };
        let last = if of.x.channels_last { "last" } else { "first" };
        note(&format!("choose {last} {:?} math {}", of.y.shape, of.windows.math));
        // The fastest is not deterministic, the next needs too much memory, the one after fails.
        for (i, (algorithm, status, memory, determinism)) in
            [(6, 0, 0, 0), (7, 0, 1 << 40, 1), (4, NOT_SUPPORTED, 0, 1), (1, 0, WORKSPACE, 1)].into_iter().enumerate()
        {
            let math = of.windows.math;
            let rated = Rated { algorithm, status, time: i as f32, memory, determinism, math, reserved: [0; 3] };
            if (i as c_int) < wanted {
                // SAFETY: the caller's array of so many results.
                unsafe { found.add(i).write(rated) };
            }
        }
        // SAFETY: the caller's variable.
        unsafe { count.write(wanted.min(4)) };
        Ok(())
    }
    fn cudnnGetConvolutionForwardWorkspaceSize(
        handle: *const FakeDnn, x: *const Array, w: *const Array, windows: *const Windows, y: *const Array,
        algorithm: c_int, bytes: *mut usize
    ) {
        // SAFETY: the caller's objects and variable.
        unsafe {
            let (_held, _of) = (held(handle)?, Convolution::of(x, w, windows, y)?);
            bytes.write(if algorithm == 1 { WORKSPACE } else { 1 << 40 });
        }
        Ok(())
    }
    fn cudnnConvolutionForward(
        handle: *const FakeDnn, alpha: *const f32, of_x: *const Array, x: *const c_void, of_w: *const Array,
        w: *const c_void, windows: *const Windows, algorithm: c_int, memory: *mut c_void, bytes: usize,
        beta: *const f32, of_y: *const Array, y: *mut c_void
    ) {
        // SAFETY: the caller's objects and numbers.
        let (held, of, factors) = unsafe {
            (held(handle)?, Convolution::of(of_x, of_w, windows, of_y)?, [*known(alpha)?, *known(beta)?])
        };
        if factors != [1.0, 0.0] || algorithm != 1 {
            return Err(NOT_SUPPORTED);
        }
        note("convolve");
        let end = End { residual: (0, 0.0), bias: 0, relu: false };
        convolve(held.0, of, [x, w, y.cast_const()], end, (memory, bytes))
    }
    fn cudnnConvolutionBiasActivationForward(
        handle: *const FakeDnn, alpha: *const f32, of_x: *const Array, x: *const c_void, of_w: *const Array,
        w: *const c_void, windows: *const Windows, algorithm: c_int, memory: *mut c_void, bytes: usize,
        factor: *const f32, of_z: *const Array, z: *const c_void, of_bias: *const Array, bias: *const c_void,
        activation: *const Activation, of_y: *const Array, y: *mut c_void
    ) {
        // SAFETY: the caller's objects and numbers.
        let (held, of, alpha, factor, of_z, of_bias, kind) = unsafe {
            let of = Convolution::of(of_x, of_w, windows, of_y)?;
            let kind = known(activation)?.kind;
            (held(handle)?, of, *known(alpha)?, *known(factor)?, known(of_z)?, known(of_bias)?, kind)
        };
        let fits = *of_z == of.y && of_bias.shape == [1, of.y.shape[1], 1, 1] && !bias.is_null() && !z.is_null();
        if !fits || alpha != 1.0 || algorithm != 1 {
            return Err(BAD_PARAM);
        }
        note("convolve with bias");
        let (residual, bias) = ((z.expose_provenance(), factor), bias.expose_provenance());
        convolve(held.0, of, [x, w, y.cast_const()], End { residual, bias, relu: kind == 1 }, (memory, bytes))
    }
}
