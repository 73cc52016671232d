//! Eight tiles of 16 rows of 64 bytes, and the register tile of 32 x 32 sums that they make.

use super::parts::PARTS;

/// Rows of a tile.
pub(crate) const ROWS: usize = 16;
/// Bytes of a row of a tile, which is a line of 32 bf16.
pub(crate) const LINE: usize = 64;
/// Numbers of a line.
pub(crate) const LINE_NUMBERS: usize = 32;
/// Bytes of a tile.
pub(crate) const TILE: usize = ROWS * LINE;
/// A tile in memory.
pub(crate) type TileBytes = [[u8; LINE]; ROWS];
/// Rows and columns of the register tile.
pub(crate) const SIDE: usize = 2 * ROWS;
/// Bytes from one row of sums to the next.
const SUMS_ROW: usize = SIDE * size_of::<f32>();

/// The halves of the numbers of a line.
pub(crate) fn halves(numbers: &[f32; LINE_NUMBERS]) -> [&[f32; ROWS]; 2] {
    bytemuck::cast_ref::<[f32; LINE_NUMBERS], [[f32; ROWS]; 2]>(numbers).each_ref()
}

/// Eight tiles. A product is `C += A * B`.
///
/// # Safety
/// For all methods: pointers are valid for 16 rows of 64 bytes, `stride` bytes apart, and the tiles
/// of this thread are configured, if they are the processor's.
#[allow(clippy::missing_safety_doc, reason = "one rule for all, above")]
pub(crate) trait Tiles {
    /// Configures the tiles of this thread, for as long as the value lives.
    ///
    /// # Panics
    /// If the system does not permit tiles.
    fn configure() -> Self;
    /// Makes a tile zero.
    unsafe fn zero<const T: usize>(&mut self);
    /// Reads a tile.
    unsafe fn load<const T: usize>(&mut self, from: *const u8, stride: usize);
    /// Reads a tile that will not be read again soon.
    unsafe fn load_once<const T: usize>(&mut self, from: *const u8, stride: usize);
    /// Writes a tile.
    unsafe fn store<const T: usize>(&mut self, to: *mut u8, stride: usize);
    /// Adds products of pairs of bf16 to sums in float32.
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self);
    /// Adds products of unsigned bytes of A and signed ones of B to sums of 32 bits, modulo 2^32: four
    /// neighbours of a row of A by the four of a column of B.
    unsafe fn multiply_bytes<const C: usize, const A: usize, const B: usize>(&mut self);
    /// Copies the first `len` bytes, at most 64, of sixteen rows, and writes zeros after them. No other
    /// bytes of the rows are read.
    unsafe fn gather(&mut self, rows: &[*const u8; ROWS], len: usize, to: &mut TileBytes);
    /// Writes the first `count` parts of 32 numbers, given as two halves, one line each, `apart`
    /// bytes from one to the next; says whether all numbers are such that products of their parts
    /// are right.
    unsafe fn split(&mut self, numbers: [&[f32; ROWS]; 2], count: usize, to: *mut u8, apart: usize) -> bool;
    /// Splits pixels of a row, as [`split`](Self::split) does each; says whether all are right.
    unsafe fn split_row(&mut self, row: &PixelRow) -> bool {
        let mut all = true;
        for i in 0..row.count {
            // SAFETY: promised by the caller.
            unsafe {
                let right = self.split(row.numbers(i), row.parts, row.to.add(i * LINE), row.apart);
                row.note(i, right);
                all &= right;
            }
        }
        all
    }
}

/// Pixels of a row of 32 channels each in two blocks of float32, and where their lines go.
pub(crate) struct PixelRow {
    pub x: *const f32,
    /// Elements from one block to the next, and from one pixel to the next.
    pub next: usize,
    pub step: usize,
    pub count: usize,
    /// Lines one after another, for each of these parts, and bytes from one part to the next.
    pub parts: usize,
    pub to: *mut u8,
    pub apart: usize,
    /// Notes for each pixel, not 0 if its parts are wrong; written where there are three parts.
    pub notes: *mut f32,
}

impl PixelRow {
    /// # Safety
    /// The pixel must be readable.
    #[inline(always)]
    pub unsafe fn numbers<'a>(&self, i: usize) -> [&'a [f32; ROWS]; 2] {
        // SAFETY: promised by the caller.
        unsafe { [&*self.x.add(i * self.step).cast(), &*self.x.add(i * self.step + self.next).cast()] }
    }

    /// # Safety
    /// The note must be writable.
    #[inline(always)]
    pub unsafe fn note(&self, i: usize, right: bool) {
        if self.parts == PARTS {
            // SAFETY: promised by the caller.
            unsafe { *self.notes.add(i) = if right { 0.0 } else { 1.0 } }
        }
    }
}

/// Lines of B that will be wanted later, of which some are requested at every step.
#[derive(Clone, Copy)]
pub(crate) struct Soon {
    /// Address of the next line to request.
    pub at: *const u8,
    /// Lines that each step requests.
    pub lines: usize,
}

impl Soon {
    #[inline(always)]
    fn request(&mut self) {
        for _ in 0..self.lines {
            crate::simd::request_far(self.at);
            self.at = self.at.wrapping_add(LINE);
        }
    }
}

/// Rows of A: at every step 32 lines, one after another, for each part.
#[derive(Clone, Copy)]
pub(crate) struct TileRows<F> {
    /// Address of the lines of the first part of a step.
    pub at: F,
    /// Bytes from one part to the next.
    pub part: usize,
}

/// Adds `steps` lines of 32 rows of A times 32 columns of B to the sums, `[32][32]` of float32, or
/// begins with zero. B is `[step][part][2 tiles]`; with one part a number is its first.
///
/// # Safety
/// As for [`Tiles`]; `a` and `b` must hold the steps, `sums` 32 x 32 numbers.
#[inline(always)]
pub(crate) unsafe fn register_tile<T: Tiles, const COUNT: usize>(
    t: &mut T,
    steps: usize,
    a: TileRows<impl Fn(usize) -> *const u8>,
    b: *const u8,
    sums: *mut u8,
    fresh: bool,
    mut soon: Soon,
) {
    let corners = [0, LINE, ROWS * SUMS_ROW, ROWS * SUMS_ROW + LINE].map(|at| sums.wrapping_add(at));
    // Tiles 0 to 3 are sums (row * 2 + column), 4 and 5 rows of A, 6 and 7 columns of B.
    // SAFETY: promised by the caller.
    unsafe {
        if fresh {
            t.zero::<0>();
            t.zero::<1>();
            t.zero::<2>();
            t.zero::<3>();
        } else {
            t.load::<0>(corners[0], SUMS_ROW);
            t.load::<1>(corners[1], SUMS_ROW);
            t.load::<2>(corners[2], SUMS_ROW);
            t.load::<3>(corners[3], SUMS_ROW);
        }
        for step in 0..steps {
            soon.request();
            let b = b.wrapping_add(step * COUNT * 2 * TILE);
            let (part, a) = (a.part, (a.at)(step));
            if COUNT == PARTS {
                // The six products of parts, small ones first; neighbours share an operand.
                columns(t, b, 0);
                rows(t, a, 2 * part);
                products(t);
                rows(t, a, part);
                products(t);
                columns(t, b, 1);
                products(t);
                rows(t, a, 0);
                products(t);
                columns(t, b, 2);
                products(t);
                columns(t, b, 0);
                products(t);
            } else {
                rows(t, a, 0);
                columns(t, b, 0);
                products(t);
            }
        }
        t.store::<0>(corners[0], SUMS_ROW);
        t.store::<1>(corners[1], SUMS_ROW);
        t.store::<2>(corners[2], SUMS_ROW);
        t.store::<3>(corners[3], SUMS_ROW);
    }
}

#[inline(always)]
unsafe fn rows<T: Tiles>(t: &mut T, a: *const u8, at: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        t.load_once::<4>(a.wrapping_add(at), LINE);
        t.load_once::<5>(a.wrapping_add(at + TILE), LINE);
    }
}

#[inline(always)]
unsafe fn columns<T: Tiles>(t: &mut T, b: *const u8, part: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        t.load::<6>(b.wrapping_add(part * 2 * TILE), LINE);
        t.load::<7>(b.wrapping_add(part * 2 * TILE + TILE), LINE);
    }
}

#[inline(always)]
unsafe fn products<T: Tiles>(t: &mut T) {
    // SAFETY: promised by the caller.
    unsafe {
        t.multiply::<0, 4, 6>();
        t.multiply::<1, 4, 7>();
        t.multiply::<2, 5, 6>();
        t.multiply::<3, 5, 7>();
    }
}
