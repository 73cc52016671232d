//! The processor's tiles. The instructions are written as `asm!`: their intrinsics are not stable.

use super::parts::LIMIT;
use super::tiles::{LINE, PixelRow, ROWS, TileBytes, Tiles};
use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

const ARCH_GET_XCOMP_PERM: i32 = 0x1022;
const ARCH_REQ_XCOMP_PERM: i32 = 0x1023;
const XFEATURE_TILEDATA: i32 = 18;

/// Whether the processor has tiles of bf16, and the system saves them (CPUID 7 and XCR0).
pub(crate) fn probe() -> bool {
    #[target_feature(enable = "xsave")]
    fn saved_states() -> u64 {
        // SAFETY: needs what the attribute says.
        unsafe { _xgetbv(0) }
    }
    let system_saves = __cpuid(1).ecx >> 27 & 1 == 1;
    if !system_saves || __cpuid(0).eax < 7 {
        return false;
    }
    // AMX-BF16 and AMX-TILE; TILECFG and TILEDATA.
    let edx = __cpuid_count(7, 0).edx;
    // SAFETY: the system saves extended states, so XGETBV exists.
    [22, 24].iter().all(|bit| edx >> bit & 1 == 1) && unsafe { saved_states() } >> 17 & 3 == 3
}

/// Whether the processor's tiles multiply bytes (AMX-INT8). It has tiles.
pub(crate) fn probe_bytes() -> bool {
    __cpuid_count(7, 0).edx >> 25 & 1 == 1
}

/// Asks the system for tiles, for the whole process and for good. The permission reaches threads
/// that run already, and children of `fork`.
pub(crate) fn ask() -> bool {
    // SAFETY: both calls only concern extended states; the second writes the mask it is given.
    unsafe {
        let mut mask = 0u64;
        libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA);
        let got = libc::syscall(libc::SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &raw mut mask);
        got == 0 && mask >> XFEATURE_TILEDATA & 1 == 1
    }
}

/// Shapes of the eight tiles, as the processor reads them.
#[repr(C, align(64))]
struct TileShapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

/// Eight tiles of 16 rows of 64 bytes.
static FULL: TileShapes = TileShapes {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// The configured tiles of this thread. Dropped, they are in their initial state again, so that the
/// system need not save them when threads are switched.
pub(crate) struct Hardware(PhantomData<*const ()>);

impl Drop for Hardware {
    fn drop(&mut self) {
        // SAFETY: tiles were configured, so the instruction exists.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) }
    }
}

impl Tiles for Hardware {
    fn configure() -> Hardware {
        assert!(super::is_permitted(), "a product on tiles was asked for where the system permits none");
        // SAFETY: the system permits tiles; the shapes are those of palette 1.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const FULL, options(nostack, readonly, preserves_flags)) };
        Hardware(PhantomData)
    }

    #[inline(always)]
    unsafe fn zero<const T: usize>(&mut self) {
        // SAFETY: this value is proof of configured tiles.
        unsafe { asm!("tilezero tmm{}", const T, options(nostack, nomem, preserves_flags)) }
    }

    #[inline(always)]
    unsafe fn load<const T: usize>(&mut self, from: *const u8, stride: usize) {
        // SAFETY: as above; the caller promised the memory.
        unsafe {
            asm!("tileloadd tmm{}, [{} + {}*1]", const T, in(reg) from, in(reg) stride,
                options(nostack, readonly, preserves_flags))
        }
    }

    #[inline(always)]
    unsafe fn load_once<const T: usize>(&mut self, from: *const u8, stride: usize) {
        // SAFETY: as above; the caller promised the memory.
        unsafe {
            asm!("tileloaddt1 tmm{}, [{} + {}*1]", const T, in(reg) from, in(reg) stride,
                options(nostack, readonly, preserves_flags))
        }
    }

    #[inline(always)]
    unsafe fn store<const T: usize>(&mut self, to: *mut u8, stride: usize) {
        // SAFETY: as above; the caller promised the memory.
        unsafe {
            asm!("tilestored [{} + {}*1], tmm{}", in(reg) to, in(reg) stride, const T,
                options(nostack, preserves_flags))
        }
    }

    #[inline(always)]
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        // SAFETY: as above; only tiles change.
        unsafe {
            asm!("tdpbf16ps tmm{}, tmm{}, tmm{}", const C, const A, const B,
                options(nostack, nomem, preserves_flags))
        }
    }

    #[inline(always)]
    unsafe fn multiply_bytes<const C: usize, const A: usize, const B: usize>(&mut self) {
        // SAFETY: as above; processors whose tiles do not multiply bytes have no such level.
        unsafe {
            asm!("tdpbusd tmm{}, tmm{}, tmm{}", const C, const A, const B,
                options(nostack, nomem, preserves_flags))
        }
    }

    #[inline(always)]
    unsafe fn gather(&mut self, rows: &[*const u8; ROWS], len: usize, to: &mut TileBytes) {
        // SAFETY: `is_permitted` asked for AVX-512; the caller promised the rows.
        unsafe { gather(rows, len, to) }
    }

    #[inline(always)]
    unsafe fn split(&mut self, numbers: [&[f32; ROWS]; 2], count: usize, to: *mut u8, apart: usize) -> bool {
        // SAFETY: `is_permitted` asked for AVX512-BF16; the caller promised the lines.
        unsafe { split(numbers, count, to, apart) }
    }

    unsafe fn split_row(&mut self, row: &PixelRow) -> bool {
        // SAFETY: as above.
        unsafe { split_row(row) }
    }
}

/// Implements [`Tiles::gather`] with AVX-512.
///
/// # Safety
/// The caller promises what [`Tiles::gather`] asks for.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn gather(rows: &[*const u8; ROWS], len: usize, to: &mut TileBytes) {
    let mask = u64::MAX >> (LINE - len);
    for (row, line) in rows.iter().zip(to) {
        // SAFETY: promised by the caller; a line has 64 bytes.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_maskz_loadu_epi8(mask, row.cast())) }
    }
}

/// Implements [`Tiles::split_row`] with AVX512-BF16.
///
/// # Safety
/// The caller promises what [`Tiles::split_row`] asks for.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn split_row(row: &PixelRow) -> bool {
    let mut all = true;
    for i in 0..row.count {
        // SAFETY: promised by the caller.
        unsafe {
            let right = split(row.numbers(i), row.parts, row.to.add(i * LINE), row.apart);
            row.note(i, right);
            all &= right;
        }
    }
    all
}

/// Implements [`Tiles::split`] with AVX512-BF16.
///
/// # Safety
/// `count` lines at `to`, `apart` bytes from one to the next, must be writable.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn split(numbers: [&[f32; ROWS]; 2], count: usize, to: *mut u8, apart: usize) -> bool {
    let [mut low, mut high] = numbers.map(|half| {
        // SAFETY: there are 16 numbers.
        unsafe { _mm512_loadu_ps(half.as_ptr()) }
    });
    let limit = _mm512_set1_ps(LIMIT);
    let large = |v| _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(_mm512_abs_ps(v), limit);
    let right = large(low) | large(high) == 0;
    for part in 0..count {
        let pairs = _mm512_cvtne2ps_pbh(high, low);
        // SAFETY: 64 bytes of either type; the caller promised the line.
        let pairs = unsafe {
            let pairs = std::mem::transmute::<__m512bh, __m512i>(pairs);
            _mm512_storeu_si512(to.add(part * apart).cast(), pairs);
            pairs
        };
        let value = |half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)));
        low = _mm512_sub_ps(low, value(_mm512_castsi512_si256(pairs)));
        high = _mm512_sub_ps(high, value(_mm512_extracti64x4_epi64::<1>(pairs)));
    }
    right
}

const _: () = assert!(size_of::<TileShapes>() == LINE);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amx::model::{Modelled, Tile};

    /// Random words of one of several kinds, on which rounding and flushing can go wrong.
    struct Words(u64);

    impl Words {
        fn bits(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 32) as u32
        }

        /// A bf16 whose exponent is one of `range` from `low` on.
        fn near(&mut self, low: u32, range: u32) -> u32 {
            (self.bits() & 0x807f) | ((low + self.bits() % range) << 7)
        }

        fn pair(&mut self, kind: usize) -> u32 {
            const SPECIAL: [u16; 16] = [
                0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffa5, 0x0001, 0x807f, 0x0080, 0x8080,
                0x7f7f, 0x1f80, 0x6000,
            ];
            let one = |words: &mut Words| match kind {
                0 => words.bits() & 0xffff,
                1 => u32::from(SPECIAL[words.bits() as usize % SPECIAL.len()]),
                2 => words.near(120, 14),
                // Products about the least normal number, and about the greatest.
                3 => words.near(52, 16),
                4 => words.near(184, 10),
                _ => words.near(1, 253),
            };
            one(self) | one(self) << 16
        }

        fn sum(&mut self, kind: usize) -> u32 {
            match kind {
                2 => 0x3f00_0000 + (self.bits() & 0x81ff_ffff),
                3 => self.bits() & 0x81ff_ffff,
                4 => (self.bits() & 0x807f_ffff) | (250 + self.bits() % 5) << 23,
                _ => self.pair(kind),
            }
        }
    }

    #[test]
    fn the_model_has_the_bits_of_the_processor() {
        if !crate::amx::is_permitted() {
            return;
        }
        let mut tiles = Hardware::configure();
        let mut words = Words(7);
        for round in 0..3000 {
            let kind = round % 6;
            let mut given: [Tile; 3] = std::array::from_fn(|_| Tile::ZERO);
            for at in 0..256 {
                given[0].set(at / 16, at % 16, words.sum(kind));
                given[1].set(at / 16, at % 16, words.pair(kind));
                given[2].set(at / 16, at % 16, words.pair(kind));
            }
            let mut got = Tile::ZERO;
            let mut model = Modelled::default();
            // SAFETY: all are tiles of 1 KiB in memory.
            let want = unsafe {
                tiles.load::<0>(given[0].0.as_ptr(), LINE);
                tiles.load::<4>(given[1].0.as_ptr(), LINE);
                tiles.load::<6>(given[2].0.as_ptr(), LINE);
                tiles.multiply::<0, 4, 6>();
                tiles.store::<0>(got.0.as_mut_ptr(), LINE);
                model.load::<0>(given[0].0.as_ptr(), LINE);
                model.load::<4>(given[1].0.as_ptr(), LINE);
                model.load::<6>(given[2].0.as_ptr(), LINE);
                model.multiply::<0, 4, 6>();
                &model.0[0]
            };
            for at in 0..256 {
                let (got, want) = (got.word(at / 16, at % 16), want.word(at / 16, at % 16));
                assert_eq!(got, want, "round {round}, kind {kind}, word {at}: {got:08x}, the model's {want:08x}");
            }
        }
    }

    #[test]
    fn the_model_has_the_sums_of_bytes_of_the_processor() {
        if !crate::amx::is_permitted() || !probe_bytes() {
            return;
        }
        let mut tiles = Hardware::configure();
        let mut words = Words(11);
        for round in 0..300 {
            let mut given: [Tile; 3] = std::array::from_fn(|_| Tile::ZERO);
            for (tile, at) in (0..3).flat_map(|tile| (0..256).map(move |at| (tile, at))) {
                given[tile].set(at / 16, at % 16, words.bits() | if round % 3 == 0 { 0x8080_8080 } else { 0 });
            }
            let len = 4 * (1 + round % 16);
            let rows = std::array::from_fn(|row| given[1].0[(15 - row) * LINE..].as_ptr());
            let mut got = Tile::ZERO;
            let mut gathered = [[[0xa5; LINE]; ROWS]; 2];
            let mut model = Modelled::default();
            // SAFETY: all are tiles of 1 KiB in memory, and rows have 64 bytes.
            let want = unsafe {
                tiles.gather(&rows, len, &mut gathered[0]);
                model.gather(&rows, len, &mut gathered[1]);
                tiles.load::<0>(given[0].0.as_ptr(), LINE);
                tiles.load::<6>(gathered[0].as_ptr().cast(), LINE);
                tiles.load::<7>(given[2].0.as_ptr(), LINE);
                tiles.multiply_bytes::<0, 6, 7>();
                tiles.store::<0>(got.0.as_mut_ptr(), LINE);
                model.load::<0>(given[0].0.as_ptr(), LINE);
                model.load::<6>(gathered[1].as_ptr().cast(), LINE);
                model.load::<7>(given[2].0.as_ptr(), LINE);
                model.multiply_bytes::<0, 6, 7>();
                &model.0[0]
            };
            assert_eq!(gathered[0], gathered[1], "round {round}");
            assert_eq!(&got, want, "round {round}");
        }
    }

    #[test]
    fn the_model_splits_as_the_processor_does() {
        if !crate::amx::is_permitted() {
            return;
        }
        let mut tiles = Hardware::configure();
        let mut words = Words(9);
        for round in 0..20_000 {
            let halves: [[f32; ROWS]; 2] = std::array::from_fn(|_| {
                std::array::from_fn(|_| match round % 3 {
                    0 => f32::from_bits(words.bits()),
                    1 => f32::from_bits(words.pair(1)),
                    _ => f32::from_bits(words.bits() & 0x81ff_ffff),
                })
            });
            let numbers = [&halves[0], &halves[1]];
            let mut lines = [[0u8; 3 * LINE]; 2];
            // SAFETY: three lines each.
            let right = unsafe {
                [
                    tiles.split(numbers, 3, lines[0].as_mut_ptr(), LINE),
                    Modelled::default().split(numbers, 3, lines[1].as_mut_ptr(), LINE),
                ]
            };
            assert_eq!(right[0], right[1], "{numbers:?}");
            // Parts of what has none (infinities, NaN) are never used.
            if right[0] {
                assert_eq!(lines[0], lines[1], "{numbers:?}");
            }
        }
    }
}
