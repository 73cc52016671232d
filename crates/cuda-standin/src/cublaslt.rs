//! cuBLASLt for tests: the same library under the name `libcublasLt.so.12` or `libcublasLt.so.13`. It
//! computes in the memory of the simulated GPUs, and is as strict as the documentation: an algorithm
//! is for the product that it was chosen for, on the device of its handle, with addresses of the
//! alignment and memory of the size that it was chosen with.

use crate::libraries::{FakeElements, destroy, library, make, note, submit};
use crate::state::{CURRENT, number};
use std::ffi::{c_int, c_void};

const INVALID_VALUE: c_int = 7;
const EXECUTION_FAILED: c_int = 13;
const NOT_SUPPORTED: c_int = 15;

/// A handle, which belongs to a context.
struct FakeLt {
    context: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Description {
    computed: c_int,
    transposed: [bool; 2],
    epilogue: c_int,
    bias: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct FakeLayout {
    elements: FakeElements,
    rows: u64,
    columns: u64,
    step: i64,
    batch: c_int,
    batch_step: i64,
}

#[derive(Default)]
struct Preference {
    workspace: usize,
    aligned: [u32; 4],
}

/// An algorithm: a hash of what it was chosen for, its memory, and the alignments.
type Algorithm = [u64; 8];

#[repr(C)]
struct FakeAnswer {
    algorithm: Algorithm,
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// Memory that the algorithm of a product uses.
const WORKSPACE: usize = 4096;

/// The product that an algorithm is for; a bias may be anywhere.
fn hash(description: &Description, layouts: [&FakeLayout; 4]) -> u64 {
    let description = Description { bias: 0, ..description.clone() };
    let text = format!("{description:?} {layouts:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// # Safety
/// A variable of the attribute's type.
unsafe fn value<T: Copy>(from: *const c_void, bytes: usize) -> Result<T, c_int> {
    // SAFETY: contract.
    if bytes == size_of::<T>() { Ok(unsafe { from.cast::<T>().read_unaligned() }) } else { Err(INVALID_VALUE) }
}

/// # Safety
/// Null, or an object that was not destroyed.
unsafe fn known<'a, T>(at: *const T) -> Result<&'a T, c_int> {
    // SAFETY: contract.
    unsafe { at.as_ref() }.ok_or(INVALID_VALUE)
}

/// Rows and columns of a factor as it is multiplied.
fn shape(layout: &FakeLayout, transposed: bool) -> [u64; 2] {
    if transposed { [layout.columns, layout.rows] } else { [layout.rows, layout.columns] }
}

/// Refuses what is no product.
fn check(description: &Description, [a, b, c, d]: [&FakeLayout; 4]) -> Result<(), c_int> {
    let ([rows, depth], [depth_of_b, columns]) =
        (shape(a, description.transposed[0]), shape(b, description.transposed[1]));
    let fits = depth == depth_of_b && [d.rows, d.columns] == [rows, columns] && c == d;
    let alike = [b, c, d].iter().all(|other| other.elements == a.elements && other.batch == a.batch);
    let dense = [a, b, d].iter().all(|layout| layout.step >= layout.rows as i64 && layout.batch_step >= 0);
    let computed = match a.elements {
        FakeElements::Half => description.computed == 68,
        FakeElements::Single => matches!(description.computed, 68 | 75 | 77),
    };
    if fits && alike && dense && computed && rows * depth * columns > 0 { Ok(()) } else { Err(INVALID_VALUE) }
}

/// A product in its turn on a stream.
struct Work {
    description: Description,
    layouts: [FakeLayout; 3],
    at: [usize; 4],
    factors: [f32; 2],
    workspace: usize,
}

impl Work {
    fn run(&self) {
        let [a, b, d] = &self.layouts;
        for batch in 0..i64::from(d.batch) {
            for column in 0..d.columns as i64 {
                for row in 0..d.rows as i64 {
                    self.element(a, b, d, [batch, row, column]);
                }
            }
        }
        if self.workspace != 0 {
            let place = std::ptr::with_exposed_provenance_mut::<u8>(self.workspace);
            // SAFETY: memory of the size that the algorithm asked for.
            unsafe { place.write_bytes(0xff, WORKSPACE) };
        }
    }

    fn element(&self, a: &FakeLayout, b: &FakeLayout, d: &FakeLayout, [batch, row, column]: [i64; 3]) {
        let place = |layout: &FakeLayout, [row, column]: [i64; 2], transposed: bool| {
            let [row, column] = if transposed { [column, row] } else { [row, column] };
            batch * layout.batch_step + column * layout.step + row
        };
        let [of_a, of_b] = self.description.transposed;
        let [_, depth] = shape(a, of_a);
        let rounded = |x: f32| match self.description.computed {
            75 => f32::from_bits((x.to_bits() + 0x7fff + (x.to_bits() >> 16 & 1)) & 0xffff_0000),
            77 => f32::from_bits((x.to_bits() + 0x1000) & 0xffff_e000),
            _ => x,
        };
        let (elements, [at_a, at_b, at_c, at_d]) = (d.elements, self.at);
        // SAFETY: the caller's promise to the library: matrices of these layouts.
        unsafe {
            let factors = |k: i64| {
                let left = elements.read(at_a, place(a, [row, k], of_a));
                (rounded(left), rounded(elements.read(at_b, place(b, [k, column], of_b))))
            };
            let sum: f32 = (0..depth as i64).map(factors).map(|(left, right)| left * right).sum();
            let here = place(d, [row, column], false);
            let [alpha, beta] = self.factors;
            let mut made = alpha * sum;
            if beta != 0.0 {
                made += beta * elements.read(at_c, here);
            }
            if self.description.epilogue & 4 != 0 {
                made += elements.read(self.description.bias as usize, row);
            }
            if self.description.epilogue & 2 != 0 {
                made = made.max(0.0);
            }
            elements.write(at_d, here, made);
        }
    }
}

/// `cublasLtGetVersion`.
///
/// # Safety
/// None is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtGetVersion() -> usize {
    number("STANDIN_CUBLASLT", 130_100) as usize
}

library! {
    fn cublasLtCreate(made: *mut *mut FakeLt) {
        note("create");
        // SAFETY: the caller's variable.
        unsafe { make(made, FakeLt { context: CURRENT.get() }) }
    }
    fn cublasLtMatmulDescCreate(made: *mut *mut Description, computed: c_int, scale: c_int) {
        if scale != 0 {
            return Err(NOT_SUPPORTED);
        }
        // SAFETY: the caller's variable.
        unsafe { make(made, Description { computed, transposed: [false; 2], epilogue: 1, bias: 0 }) }
    }
    // SAFETY: the caller's object.
    fn cublasLtMatmulDescDestroy(at: *mut Description) { unsafe { destroy(at) } }
    fn cublasLtMatmulDescSetAttribute(at: *mut Description, attribute: c_int, from: *const c_void, bytes: usize) {
        // SAFETY: the caller's object and value.
        let (to, number) = unsafe { (at.as_mut().ok_or(INVALID_VALUE)?, value::<c_int>(from, bytes)) };
        match attribute {
            3 | 4 => to.transposed[attribute as usize - 3] = number? == 1,
            7 => to.epilogue = number?,
            // SAFETY: as above.
            8 => to.bias = unsafe { value(from, bytes)? },
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
    fn cublasLtMatrixLayoutCreate(made: *mut *mut FakeLayout, elements: c_int, rows: u64, columns: u64, step: i64) {
        let elements = match elements {
            0 => FakeElements::Single,
            2 => FakeElements::Half,
            _ => return Err(NOT_SUPPORTED),
        };
        // SAFETY: the caller's variable.
        unsafe { make(made, FakeLayout { elements, rows, columns, step, batch: 1, batch_step: 0 }) }
    }
    // SAFETY: the caller's object.
    fn cublasLtMatrixLayoutDestroy(at: *mut FakeLayout) { unsafe { destroy(at) } }
    fn cublasLtMatrixLayoutSetAttribute(at: *mut FakeLayout, attribute: c_int, from: *const c_void, bytes: usize) {
        // SAFETY: the caller's object.
        let to = unsafe { at.as_mut() }.ok_or(INVALID_VALUE)?;
        // SAFETY: the caller's value.
        unsafe {
            match attribute {
                5 => to.batch = value(from, bytes)?,
                6 => to.batch_step = value(from, bytes)?,
                _ => return Err(INVALID_VALUE),
            }
        }
        Ok(())
    }
    fn cublasLtMatmulPreferenceCreate(made: *mut *mut Preference) {
        // SAFETY: the caller's variable.
        unsafe { make(made, Preference { workspace: 0, aligned: [256; 4] }) }
    }
    // SAFETY: the caller's object.
    fn cublasLtMatmulPreferenceDestroy(at: *mut Preference) { unsafe { destroy(at) } }
    fn cublasLtMatmulPreferenceSetAttribute(at: *mut Preference, attribute: c_int, from: *const c_void, bytes: usize) {
        // SAFETY: the caller's object.
        let to = unsafe { at.as_mut() }.ok_or(INVALID_VALUE)?;
        // SAFETY: the caller's value.
        unsafe {
            match attribute {
                1 => to.workspace = value(from, bytes)?,
                5..=8 => to.aligned[attribute as usize - 5] = value(from, bytes)?,
                _ => return Err(INVALID_VALUE),
            }
        }
        Ok(())
    }
    fn cublasLtMatmulAlgoGetHeuristic(
        handle: *const FakeLt, description: *const Description, a: *const FakeLayout, b: *const FakeLayout, c: *const FakeLayout,
        d: *const FakeLayout, preference: *const Preference, wanted: c_int, found: *mut FakeAnswer, count: *mut c_int
    ) {
        // SAFETY: the caller's objects.
        let (handle, description, a, b, c, d, preference) = unsafe {
            (known(handle)?, known(description)?, known(a)?, known(b)?, known(c)?, known(d)?, known(preference)?)
        };
        check(description, [a, b, c, d])?;
        if handle.context != CURRENT.get() || wanted != 1 || preference.workspace < WORKSPACE {
            return Err(INVALID_VALUE);
        }
        let (depth, kind) = (shape(a, description.transposed[0])[1], format!("{:?}", d.elements));
        note(&format!("choose {kind} {}x{}x{depth} * {}", d.rows, d.columns, d.batch));
        let [of_a, of_b, of_c, of_d] = preference.aligned.map(u64::from);
        let bias = description.bias & description.bias.wrapping_neg();
        let algorithm = [hash(description, [a, b, c, d]), handle.context as u64, of_a, of_b, of_c, of_d, bias, 1];
        // SAFETY: the caller's variables.
        unsafe {
            found.write(FakeAnswer { algorithm, workspace: WORKSPACE, state: 0, waves: 1.0, reserved: [0; 4] });
            count.write(1);
        }
        Ok(())
    }
    fn cublasLtMatmul(
        handle: *const FakeLt, description: *const Description, alpha: *const f32, a: *const c_void,
        of_a: *const FakeLayout, b: *const c_void, of_b: *const FakeLayout, beta: *const f32, c: *const c_void,
        of_c: *const FakeLayout, d: *mut c_void, of_d: *const FakeLayout, algorithm: *const Algorithm, workspace: *mut c_void,
        bytes: usize, stream: *mut c_void
    ) {
        // SAFETY: the caller's objects and numbers.
        let (handle, description, layouts, algorithm, factors) = unsafe {
            let layouts = [known(of_a)?, known(of_b)?, known(of_c)?, known(of_d)?];
            (known(handle)?, known(description)?, layouts, known(algorithm)?, [*known(alpha)?, *known(beta)?])
        };
        let [hash_of, context, aligned @ .., bias, _] = *algorithm;
        let at = [a, b, c, d.cast_const()].map(|at| at.expose_provenance());
        let is_aligned = at.iter().zip(aligned).all(|(at, bytes)| *at != 0 && (*at as u64).is_multiple_of(bytes));
        let has_bias = description.epilogue & 4 == 0 || (description.bias != 0 && description.bias % bias == 0);
        let same = hash_of == hash(description, layouts) && context == handle.context as u64;
        if !same || !is_aligned || !has_bias || handle.context != CURRENT.get() || workspace.is_null() || bytes < WORKSPACE {
            return Err(INVALID_VALUE);
        }
        note("multiply");
        let workspace = workspace.expose_provenance();
        let layouts = [layouts[0].clone(), layouts[1].clone(), layouts[3].clone()];
        let work = Work { description: description.clone(), layouts, at, factors, workspace };
        submit(stream.expose_provenance(), move || work.run()).map_err(|_| EXECUTION_FAILED)
    }
}
