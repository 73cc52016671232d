//! Pointers of the kernels' inner loops. In builds with debug assertions they carry the bounds of
//! the slice they came from and check every access; otherwise they are bare pointers.

use super::LANES;
use crate::par::Columns;

macro_rules! pointer {
    ($(#[$doc:meta])* $name:ident, $raw:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name {
            ptr: $raw,
            #[cfg(debug_assertions)]
            bounds: (usize, usize),
        }

        // SAFETY: a plain address; code that reads or writes through it answers for the absence of
        // races (each access is an unsafe call).
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            /// The pointer `n` elements on. Checked when it is used, not here.
            #[inline(always)]
            pub(crate) fn add(self, n: usize) -> Self {
                $name { ptr: self.ptr.wrapping_add(n), ..self }
            }

            /// The address `n` elements on, which the caller has checked. Debug builds do without the
            /// standard library's own check of the addition, in the place of each access.
            ///
            /// # Safety
            /// It must be inside the slice this pointer came from, or at its end.
            #[inline(always)]
            unsafe fn at(self, n: usize) -> $raw {
                if cfg!(debug_assertions) {
                    self.ptr.wrapping_add(n)
                } else {
                    // SAFETY: promised by the caller.
                    unsafe { self.ptr.add(n) }
                }
            }

            /// Debug builds: `n` elements from `at` lie inside the slice this pointer came from.
            #[inline(always)]
            fn check(self, at: usize, n: usize) {
                #[cfg(debug_assertions)]
                {
                    let start = self.ptr.wrapping_add(at) as usize;
                    let (lo, hi) = self.bounds;
                    if start < lo || start.wrapping_add(n * size_of::<f32>()) > hi {
                        outside(start, n, lo, hi);
                    }
                }
                #[cfg(not(debug_assertions))]
                let _ = (at, n);
            }
        }
    };
}

/// Panics for an access outside of a buffer. It is not in the place of each of the thousands of
/// accesses of a kernel, which took most of the time to compile it.
#[cfg(debug_assertions)]
#[cold]
#[inline(never)]
fn outside(start: usize, n: usize, lo: usize, hi: usize) -> ! {
    panic!(
        "kernel access of {n} elements at {} outside a buffer of {}",
        (start as isize - lo as isize) / size_of::<f32>() as isize,
        (hi - lo) / size_of::<f32>(),
    );
}

pointer!(
    /// A position from which a kernel reads.
    Src,
    *const f32
);
pointer!(
    /// A position to which a kernel writes; several threads may hold one and write disjoint parts.
    Dst,
    *mut f32
);

/// A vector at any address.
#[repr(C, packed)]
struct Unaligned<T>(T);

/// Loads a vector. The instructions' own functions do the same, but check their argument in debug
/// builds, which then call them as functions.
///
/// # Safety
/// `p` must be readable as far as `T` goes.
#[inline(always)]
pub(super) unsafe fn load<T: Copy>(p: *const f32) -> T {
    // SAFETY: promised by the caller; any address is aligned for a packed type.
    unsafe { (*p.cast::<Unaligned<T>>()).0 }
}

/// Stores a vector, as [`load`].
///
/// # Safety
/// `p` must be writable as far as `T` goes, and not accessed by another thread.
#[inline(always)]
pub(super) unsafe fn store<T: Copy>(p: *mut f32, v: T) {
    // SAFETY: promised by the caller; any address is aligned for a packed type.
    unsafe { *p.cast::<Unaligned<T>>() = Unaligned(v) }
}

impl Src {
    /// Reads inside `s`.
    #[inline(always)]
    pub(crate) fn new(s: &[f32]) -> Src {
        Src {
            ptr: s.as_ptr(),
            #[cfg(debug_assertions)]
            bounds: (s.as_ptr() as usize, s.as_ptr() as usize + size_of_val(s)),
        }
    }

    /// Reads any elements of four bytes.
    ///
    /// # Panics
    /// If they have another size.
    #[inline(always)]
    pub(crate) fn of_words<T: bytemuck::Pod>(s: &[T]) -> Src {
        assert_eq!(size_of::<T>(), size_of::<f32>(), "elements of four bytes");
        Src {
            ptr: s.as_ptr().cast(),
            #[cfg(debug_assertions)]
            bounds: (s.as_ptr() as usize, s.as_ptr() as usize + size_of_val(s)),
        }
    }

    /// # Safety
    /// `self[at]` must be readable.
    #[inline(always)]
    pub(crate) unsafe fn read(self, at: usize) -> f32 {
        self.check(at, 1);
        // SAFETY: promised by the caller.
        unsafe { *self.at(at) }
    }

    /// Pointer to 16 readable elements, for a vector load.
    ///
    /// # Safety
    /// `self[at .. at + 16]` must be readable.
    #[inline(always)]
    pub(crate) unsafe fn block(self, at: usize) -> *const f32 {
        self.check(at, LANES);
        // SAFETY: promised by the caller.
        unsafe { self.at(at) }
    }

    /// Pointer to `n` readable elements, for a load of less than a vector.
    ///
    /// # Safety
    /// `self[at .. at + n]` must be readable.
    #[inline(always)]
    pub(super) unsafe fn run(self, at: usize, n: usize) -> *const f32 {
        self.check(at, n);
        // SAFETY: promised by the caller.
        unsafe { self.at(at) }
    }

    /// Pointer to elements of which those with a bit in `mask` are readable, for a masked load.
    ///
    /// # Safety
    /// `self[at + i]` must be readable for every bit i of `mask`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) unsafe fn masked_block(self, at: usize, mask: u16) -> *const f32 {
        self.check(at, (u16::BITS - mask.leading_zeros()) as usize);
        self.ptr.wrapping_add(at)
    }

    /// Pointer to the bytes of `n` readable elements.
    ///
    /// # Safety
    /// `self[.. n]` must be readable.
    #[inline(always)]
    pub(crate) unsafe fn bytes(self, n: usize) -> *const u8 {
        self.check(0, n);
        self.ptr.cast()
    }

    /// The address `n` elements on, valid or not, for a prefetch.
    #[inline(always)]
    pub(super) fn address(self, n: usize) -> *const i8 {
        self.ptr.wrapping_add(n).cast()
    }
}

impl Dst {
    /// Writes inside `s`.
    #[inline(always)]
    pub(crate) fn new(s: &mut [f32]) -> Dst {
        Dst {
            ptr: s.as_mut_ptr(),
            #[cfg(debug_assertions)]
            bounds: (s.as_ptr() as usize, s.as_ptr() as usize + size_of_val(s)),
        }
    }

    /// Writes any elements of four bytes of a matrix from its first row on; those of the next row
    /// are a pitch further.
    ///
    /// # Panics
    /// If they have another size.
    #[inline(always)]
    pub(crate) fn of_words<T: bytemuck::Pod>(matrix: &mut Columns<'_, T>) -> Dst {
        assert_eq!(size_of::<T>(), size_of::<f32>(), "elements of four bytes");
        let ptr: *mut f32 = matrix.addresses(0..0, 0..0).cast();
        #[cfg(debug_assertions)]
        let elements = (matrix.rows().max(1) - 1) * matrix.pitch() + matrix.width();
        Dst {
            ptr,
            #[cfg(debug_assertions)]
            bounds: (ptr as usize, ptr.wrapping_add(elements) as usize),
        }
    }

    /// Reads what is written through this pointer.
    #[inline(always)]
    pub(crate) fn as_src(self) -> Src {
        Src {
            ptr: self.ptr,
            #[cfg(debug_assertions)]
            bounds: self.bounds,
        }
    }

    /// # Safety
    /// `self[at]` must be writable and not accessed by another thread.
    #[inline(always)]
    pub(crate) unsafe fn write(self, at: usize, v: f32) {
        self.check(at, 1);
        // SAFETY: promised by the caller.
        unsafe { *self.at(at) = v }
    }

    /// Writes `n` zeros.
    ///
    /// # Safety
    /// `self[at .. at + n]` must be writable and not accessed by another thread.
    #[inline(always)]
    pub(crate) unsafe fn zero(self, at: usize, n: usize) {
        self.check(at, n);
        // SAFETY: promised by the caller; all-zero bytes are 0.0.
        unsafe { self.at(at).write_bytes(0, n) }
    }

    /// Copies `n` elements.
    ///
    /// # Safety
    /// `self[at .. at + n]` must be writable and not accessed by another thread, `from[.. n]`
    /// readable, the two disjoint.
    #[inline(always)]
    pub(crate) unsafe fn copy_from(self, at: usize, from: Src, n: usize) {
        self.check(at, n);
        from.check(0, n);
        // SAFETY: promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from.ptr, self.at(at), n) }
    }

    /// Pointer to 16 writable elements, for a vector store.
    ///
    /// # Safety
    /// `self[at .. at + 16]` must be writable and not accessed by another thread.
    #[inline(always)]
    pub(crate) unsafe fn block(self, at: usize) -> *mut f32 {
        self.check(at, LANES);
        // SAFETY: promised by the caller.
        unsafe { self.at(at) }
    }

    /// Pointer to `n` writable elements, for a store of a part of a vector.
    ///
    /// # Safety
    /// `self[at .. at + n]` must be writable and not accessed by another thread.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) unsafe fn part(self, at: usize, n: usize) -> *mut f32 {
        self.check(at, n);
        // SAFETY: promised by the caller.
        unsafe { self.at(at) }
    }
}
