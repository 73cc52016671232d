//! Memory of kernels for the length of a call, as elements of a type.
//!
//! Where its size follows from arrays or attributes, memory comes from [`Par::memory`]: then it
//! counts as in use, and the call fails where there is none. A `Vec` ends the process.

use crate::par::{Par, chunk_elems, par_chunks_mut};
use bytemuck::Pod;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Most bytes that come from the allocator of the process instead: a block costs more than many
/// kernels do, and so little memory is always there.
const SMALL: usize = 4096;

/// Alignment of the memory that a [`Par`] lends.
pub const SCRATCH_ALIGN: usize = 64;

/// Bytes that a [`Par`] lends: initialised, of arbitrary content.
pub trait Memory: Send + Sync {
    /// The bytes, at a multiple of [`SCRATCH_ALIGN`].
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A fixed number of elements in memory of a [`Par`], which goes back when they are dropped.
///
/// The functions that make one do not return where there is no memory: the call ends with an error.
pub struct Scratch<T: Copy> {
    elements: NonNull<T>,
    len: usize,
    /// elements that fit
    room: usize,
    owner: Owner,
}

/// The owner of elements.
enum Owner {
    /// there are no bytes
    Nobody,
    Process(Layout),
    Lent(NonNull<dyn Memory>),
}

// SAFETY: it owns its elements, and `Memory` may be sent.
unsafe impl<T: Copy + Send> Send for Scratch<T> {}
// SAFETY: shared references only read the elements, and nothing uses the owner but `drop`.
unsafe impl<T: Copy + Sync> Sync for Scratch<T> {}

impl<T: Copy> Scratch<T> {
    /// `len` elements whose bytes have arbitrary content.
    fn of_bytes(par: &dyn Par, len: usize) -> Scratch<T> {
        const { assert!(align_of::<T>() <= SCRATCH_ALIGN) };
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes == 0 {
            return Scratch { elements: NonNull::dangling(), len, room: len, owner: Owner::Nobody };
        }
        if bytes <= SMALL {
            let Ok(layout) = Layout::array::<T>(len) else { unreachable!("so few bytes have a layout") };
            // SAFETY: the size is not zero.
            let made = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
            return Scratch { elements: made.cast(), len, room: len, owner: Owner::Process(layout) };
        }
        let memory = NonNull::from(Box::leak(par.memory(bytes)));
        // SAFETY: leaked above, and nothing else uses it before `drop`, so the borrow may last.
        let lent = unsafe { &mut *memory.as_ptr() }.bytes_mut();
        let fits = lent.len() >= bytes && lent.as_ptr().addr().is_multiple_of(align_of::<T>());
        assert!(fits, "{bytes} bytes of scratch memory are asked for, {} at {:p} came", lent.len(), lent.as_ptr());
        Scratch { elements: NonNull::from(lent).cast(), len, room: len, owner: Owner::Lent(memory) }
    }

    /// `len` copies of a value.
    pub fn filled(par: &dyn Par, len: usize, value: T) -> Scratch<T> {
        let made = Scratch::of_bytes(par, len);
        // SAFETY: the memory has room for so many elements.
        (0..len).for_each(|i| unsafe { made.elements.add(i).write(value) });
        made
    }

    /// A copy of some elements.
    pub fn copy_of(par: &dyn Par, elements: &[T]) -> Scratch<T> {
        let made = Scratch::of_bytes(par, elements.len());
        // SAFETY: the memory has room for so many elements, and is apart from any others.
        unsafe { made.elements.copy_from_nonoverlapping(NonNull::from(elements).cast(), elements.len()) };
        made
    }

    /// Keeps what an iterator gives: no more than `most` elements, for which it takes memory.
    ///
    /// # Panics
    /// If it gives more.
    pub fn collect(par: &dyn Par, most: usize, elements: impl IntoIterator<Item = T>) -> Scratch<T> {
        let mut made = Scratch::of_bytes(par, most);
        let mut len = 0;
        elements.into_iter().for_each(|element| {
            assert!(len < most, "an iterator gives more than {most} elements");
            // SAFETY: there is room for `most`.
            unsafe { made.elements.add(len).write(element) };
            len += 1;
        });
        made.len = len;
        made
    }

    /// Keeps what a function makes of elements.
    pub fn map<S: Copy + Sync>(par: &dyn Par, from: &[S], function: impl Fn(S) -> T + Sync) -> Scratch<T>
    where
        T: Send,
    {
        let made = Scratch::<T>::of_bytes(par, from.len());
        // SAFETY: the memory has room for as many elements, and nothing else uses it.
        let room: &mut [MaybeUninit<T>] =
            unsafe { std::slice::from_raw_parts_mut(made.elements.as_ptr().cast(), from.len()) };
        let chunk = chunk_elems::<T>();
        par_chunks_mut(par, room, chunk, |i, room| {
            room.iter_mut().zip(&from[i * chunk..]).for_each(|(made, element)| {
                made.write(function(*element));
            });
        });
        made
    }

    /// Appends an element.
    ///
    /// # Safety
    /// There is room for it.
    unsafe fn push_within(&mut self, element: T) {
        // SAFETY: the caller's promise.
        unsafe { self.elements.add(self.len).write(element) };
        self.len += 1;
    }

    /// Appends copies.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn append_within(&mut self, elements: &[T]) {
        // SAFETY: the caller's promise; `self` is borrowed alone, so they lie elsewhere.
        unsafe {
            let to = self.elements.add(self.len);
            to.copy_from_nonoverlapping(NonNull::from(elements).cast(), elements.len());
        }
        self.len += elements.len();
    }

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Keeps what an iterator gives, unless that is an error: no more than `most` elements.
    ///
    /// # Panics
    /// If it gives more.
    pub fn try_collect<E>(
        par: &dyn Par,
        most: usize,
        elements: impl IntoIterator<Item = Result<T, E>>,
    ) -> Result<Scratch<T>, E> {
        let mut error = None;
        let good = elements.into_iter().map_while(|element| element.map_err(|e| error = Some(e)).ok());
        let made = Scratch::collect(par, most, good);
        error.map_or(Ok(made), Err)
    }
}

impl<T: Pod> Scratch<T> {
    /// `len` elements of arbitrary content. In builds with assertions floating-point numbers are
    /// NaN and whole ones -1, so that tests see a result that depends on them.
    pub fn new(par: &dyn Par, len: usize) -> Scratch<T> {
        let mut made = Scratch::of_bytes(par, len);
        if cfg!(debug_assertions) {
            bytemuck::cast_slice_mut::<T, u8>(&mut made).fill(0xff);
        }
        made
    }
}

impl<T: Copy> Drop for Scratch<T> {
    fn drop(&mut self) {
        match self.owner {
            Owner::Nobody => {}
            // SAFETY: allocated by `of_bytes` with this layout, and not used any more.
            Owner::Process(layout) => unsafe { dealloc(self.elements.as_ptr().cast(), layout) },
            // SAFETY: leaked by `of_bytes`, and the elements are not used any more.
            Owner::Lent(memory) => drop(unsafe { Box::from_raw(memory.as_ptr()) }),
        }
    }
}

impl<T: Copy> Deref for Scratch<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many elements are initialised, and their owner is `self`.
        unsafe { std::slice::from_raw_parts(self.elements.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Scratch<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.elements.as_ptr(), self.len) }
    }
}

impl<'a, T: Copy> IntoIterator for &'a Scratch<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Scratch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A list in memory of a [`Par`] that grows.
pub struct ScratchList<'a, T: Copy> {
    par: &'a dyn Par,
    elements: Scratch<T>,
}

impl<'a, T: Copy> ScratchList<'a, T> {
    /// An empty list.
    pub fn new(par: &'a dyn Par) -> ScratchList<'a, T> {
        ScratchList { par, elements: Scratch::of_bytes(par, 0) }
    }

    /// Appends an element.
    pub fn push(&mut self, element: T) {
        if self.elements.len == self.elements.room {
            self.grow(1);
        }
        // SAFETY: there is room now.
        unsafe { self.elements.push_within(element) };
    }

    /// Appends what an iterator gives.
    pub fn extend(&mut self, elements: impl IntoIterator<Item = T>) {
        elements.into_iter().for_each(|element| self.push(element));
    }

    /// Appends copies.
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        self.grow(elements.len());
        // SAFETY: there is room, and what is borrowed lies elsewhere.
        unsafe { self.elements.append_within(elements) };
    }

    /// Makes the list this long, by copies of a value if it is shorter.
    pub fn resize(&mut self, len: usize, value: T) {
        self.grow(len.saturating_sub(self.len()));
        self.extend((self.len()..len).map(|_| value));
        self.elements.truncate(len);
    }

    /// Makes room for some more: at least for as many as there are, so that few copies are made.
    fn grow(&mut self, more: usize) {
        let wanted = self.elements.len.saturating_add(more);
        if wanted > self.elements.room {
            let mut larger = Scratch::of_bytes(self.par, wanted.max(2 * self.elements.room).max(16));
            larger.len = 0;
            // SAFETY: there is room for more than these.
            unsafe { larger.append_within(&self.elements) };
            self.elements = larger;
        }
    }

    /// Sorts the list and keeps one of equal elements.
    pub fn sort_distinct(&mut self)
    where
        T: Ord,
    {
        self.elements.sort_unstable();
        let mut kept = 0;
        for i in 0..self.elements.len {
            if kept == 0 || self.elements[i] != self.elements[kept - 1] {
                self.elements[kept] = self.elements[i];
                kept += 1;
            }
        }
        self.elements.truncate(kept);
    }

    /// Removes all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.elements.truncate(0);
    }
}

impl<T: Copy> Deref for ScratchList<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.elements
    }
}

impl<T: Copy> DerefMut for ScratchList<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }
}

/// Elements of an array, or made of these in scratch memory.
#[derive(Debug)]
pub enum ReadElements<'a, T: Copy> {
    /// Elements of the array.
    Borrowed(&'a [T]),
    /// Elements made of these.
    Made(Scratch<T>),
}

impl<T: Copy> Deref for ReadElements<'_, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            ReadElements::Borrowed(elements) => elements,
            ReadElements::Made(elements) => elements,
        }
    }
}

/// One cache line, so that a vector of them starts on a 64-byte boundary.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; SCRATCH_ALIGN]);

// SAFETY: `Line` is a 64-byte array with 64-byte alignment: no padding, every bit pattern valid.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl Pod for Line {}

impl Line {
    /// Lines of `bytes` zeros.
    ///
    /// # Panics
    /// If the system has no memory.
    pub(crate) fn zeros(bytes: usize) -> Vec<Line> {
        let (lines, mut made) = (bytes.div_ceil(SCRATCH_ALIGN), Vec::new());
        if made.try_reserve_exact(lines).is_err() {
            panic!("allocating {bytes} bytes of scratch memory: the system has no more");
        }
        made.resize(lines, Line([0; SCRATCH_ALIGN]));
        made
    }
}

/// Memory of the system, which nothing counts.
pub(crate) struct SystemMemory(pub Vec<Line>);

impl Memory for SystemMemory {
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    #[test]
    fn elements_are_filled_copied_and_collected() {
        assert_eq!(*Scratch::filled(&Serial, 3, (1u8, 2.5f64)), [(1, 2.5); 3]);
        assert_eq!(*Scratch::copy_of(&Serial, &[1i64, 2, 3]), [1, 2, 3]);
        assert_eq!(*Scratch::map(&Serial, &[1u8, 200], f64::from), [1.0, 200.0]);
        assert_eq!(*Scratch::collect(&Serial, 10, (0..10usize).filter(|i| i % 3 == 0)), [0, 3, 6, 9]);
        let mut some = Scratch::<f32>::new(&Serial, 5);
        some.fill(2.0);
        some[4] = 1.0;
        assert_eq!((some.len(), some.iter().sum::<f32>()), (5, 9.0));
        assert_eq!(Scratch::<u8>::new(&Serial, 5000).as_ptr().addr() % SCRATCH_ALIGN, 0);
        assert!(Scratch::<u8>::new(&Serial, 0).is_empty());
        let until =
            |bad: usize| Scratch::try_collect(&Serial, 4, (0..4).map(|i| if i == bad { Err(i) } else { Ok(i) }));
        assert_eq!(until(9).map(|made| made.to_vec()), Ok(vec![0, 1, 2, 3]));
        assert_eq!(until(2).map(|made| made.to_vec()), Err(2));
    }

    #[test]
    fn a_list_grows_and_forgets_equal_elements() {
        let mut list = ScratchList::new(&Serial);
        list.extend((0..1000usize).map(|i| i * 7 % 100));
        list.extend_from_slice(&[100, 5]);
        assert_eq!((list.len(), list[999], list[1001]), (1002, 93, 5));
        list.sort_distinct();
        assert!(list.iter().copied().eq(0..=100));
        list.clear();
        list.push(3);
        list.resize(3, 8);
        assert_eq!(*list, [3, 8, 8]);
        list.resize(2, 0);
        assert_eq!(*list, [3, 8]);
    }

    #[test]
    fn more_than_was_asked_for_is_refused() {
        assert!(std::panic::catch_unwind(|| Scratch::collect(&Serial, 2, 0..3)).is_err());
        assert!(std::panic::catch_unwind(|| Scratch::<u64>::new(&Serial, usize::MAX)).is_err());
    }
}
