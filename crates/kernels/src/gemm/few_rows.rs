//! Products of few rows with a panel of weights in any form: numbers are expanded in registers where
//! they are multiplied.

use super::{PackedForm, Sgemm, SmallWeights};
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry_narrow, entry_wide};
use std::marker::PhantomData;

/// Most rows of a product.
pub(super) const FEW_ROWS: usize = 6;

/// A way to read 16 numbers.
pub(super) trait Code {
    /// Elements of 16 numbers.
    const BLOCK: usize;
    /// # Safety
    /// `p[at .. at + BLOCK]` must be readable.
    unsafe fn load<S: Simd>(s: S, p: Src, at: usize) -> S::V;
    /// The sums of products of what [`load`](Self::load) gives, in the unit of the numbers.
    #[inline(always)]
    fn finish<S: Simd>(_: S, sums: S::V) -> S::V {
        sums
    }
}

pub(super) struct Singles;

impl Code for Singles {
    const BLOCK: usize = LANES;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: Src, at: usize) -> S::V {
        // SAFETY: promised by the caller.
        unsafe { s.load(p, at) }
    }
}

pub(super) struct Bytes;

impl Code for Bytes {
    const BLOCK: usize = LANES / 4;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: Src, at: usize) -> S::V {
        // SAFETY: promised by the caller.
        unsafe { s.load_bytes(p, at) }
    }
    #[inline(always)]
    fn finish<S: Simd>(s: S, sums: S::V) -> S::V {
        s.mul(sums, s.splat(1.0 / S::BYTE_UNIT))
    }
}

pub(super) struct Halves;

impl Halves {
    /// The place of a column among the halves of a step.
    pub(super) fn place(column: usize) -> usize {
        let (block, lane) = (column / LANES, column % LANES);
        // An element has its low half first, as `load_bf16` reads it.
        let low = if cfg!(target_endian = "little") { lane / (LANES / 2) } else { 1 - lane / (LANES / 2) };
        block * LANES + lane % (LANES / 2) * 2 + low
    }
}

impl Code for Halves {
    const BLOCK: usize = LANES / 2;
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: Src, at: usize) -> S::V {
        // SAFETY: promised by the caller.
        unsafe { s.load_bf16(p, at) }
    }
}

pub(super) struct ExpandArgs {
    pub from: Src,
    pub blocks: usize,
    pub to: Dst,
}

pub(super) struct Expand<C>(PhantomData<C>);

impl<C: Code> Body for Expand<C> {
    type Args = ExpandArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &ExpandArgs) {
        for block in 0..x.blocks {
            // SAFETY: the caller has these blocks on both sides.
            unsafe { s.store(x.to, block * LANES, C::finish(s, C::load(s, x.from, block * C::BLOCK))) }
        }
    }
}

/// Rows of A, `row` elements apart, a panel of k steps, and rows of sums without gaps.
pub(super) struct FewRowsArgs {
    pub a: Src,
    pub row: usize,
    pub k: usize,
    pub b: Src,
    pub sums: Dst,
}

/// The sums of M rows and N blocks of columns. One multiply-add after another would wait for its
/// predecessor's result, so steps are spread over `WAYS` sets of sums.
struct FewRows<C, const M: usize, const N: usize, const WAYS: usize>(PhantomData<C>);

impl<C: Code, const M: usize, const N: usize, const WAYS: usize> Body for FewRows<C, M, N, WAYS> {
    type Args = FewRowsArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &FewRowsArgs) {
        // SAFETY: the caller has these rows, steps, and room for the sums.
        unsafe {
            let mut sums = [[[s.zero(); N]; M]; WAYS];
            let whole = x.k / WAYS * WAYS;
            let (mut b, mut step) = (x.b, 0);
            while step < whole {
                for way in 0..WAYS {
                    add_step::<S, C, M, N>(s, &mut sums[way], x.a.add(step + way), x.row, b);
                    b = b.add(N * C::BLOCK);
                }
                step += WAYS;
            }
            for step in whole..x.k {
                add_step::<S, C, M, N>(s, &mut sums[0], x.a.add(step), x.row, b);
                b = b.add(N * C::BLOCK);
            }
            for m in 0..M {
                for n in 0..N {
                    let mut sum = sums[0][m][n];
                    for way in 1..WAYS {
                        sum = s.add(sum, sums[way][m][n]);
                    }
                    s.store(x.sums, (m * N + n) * LANES, C::finish(s, sum));
                }
            }
        }
    }
}

/// Adds one step of M rows.
///
/// # Safety
/// `a` must have a value in each of M rows, `b` N blocks.
#[inline(always)]
unsafe fn add_step<S: Simd, C: Code, const M: usize, const N: usize>(
    s: S,
    sums: &mut [[S::V; N]; M],
    a: Src,
    row: usize,
    b: Src,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut weights = [s.zero(); N];
        for n in 0..N {
            weights[n] = C::load(s, b, n * C::BLOCK);
        }
        for m in 0..M {
            let value = s.splat(a.read(m * row));
            for n in 0..N {
                sums[m][n] = s.fma(value, weights[n], sums[m][n]);
            }
        }
    }
}

/// The product of `rows` rows, at most [`FEW_ROWS`], with a panel in the form of `gemm`. None where
/// its weights are not in panels.
pub(super) fn few_rows(gemm: &Sgemm, rows: usize) -> Option<Entry<FewRowsArgs>> {
    match gemm.form {
        PackedForm::Plain => Some(entry_of::<Singles>(gemm, rows)),
        PackedForm::Small(SmallWeights::Bf16) => Some(entry_of::<Halves>(gemm, rows)),
        PackedForm::Small(SmallWeights::Int8) => Some(entry_of::<Bytes>(gemm, rows)),
        PackedForm::Compact => None,
    }
}

fn entry_of<C: Code>(gemm: &Sgemm, rows: usize) -> Entry<FewRowsArgs> {
    let isa = gemm.isa;
    match (gemm.panel() / LANES, rows) {
        (1, 1) => entry_narrow::<FewRows<C, 1, 1, 4>>(isa),
        (1, 2) => entry_narrow::<FewRows<C, 2, 1, 2>>(isa),
        (1, 3) => entry_narrow::<FewRows<C, 3, 1, 2>>(isa),
        (1, 4) => entry_narrow::<FewRows<C, 4, 1, 1>>(isa),
        (1, 5) => entry_narrow::<FewRows<C, 5, 1, 1>>(isa),
        (1, 6) => entry_narrow::<FewRows<C, 6, 1, 1>>(isa),
        (2, 1) => entry_wide::<FewRows<C, 1, 2, 4>>(),
        (2, 2) => entry_wide::<FewRows<C, 2, 2, 2>>(),
        (2, 3) => entry_wide::<FewRows<C, 3, 2, 2>>(),
        (2, 4) => entry_wide::<FewRows<C, 4, 2, 1>>(),
        (2, 5) => entry_wide::<FewRows<C, 5, 2, 1>>(),
        (2, 6) => entry_wide::<FewRows<C, 6, 2, 1>>(),
        (blocks, rows) => panic!("no product of {rows} rows and {blocks} blocks expands weights in registers"),
    }
}

impl Sgemm {
    /// Whether [`panel_sums`](Self::panel_sums) computes this product.
    pub(crate) fn has_panel_sums(&self) -> bool {
        (1..=FEW_ROWS).contains(&self.m) && self.form != PackedForm::Compact
    }

    /// The sums of one panel of columns: rows of [`panel`](Self::panel) numbers without gaps.
    ///
    /// # Panics
    /// If there is no such panel, the product has too many rows, or an operand is too small.
    pub(crate) fn panel_sums(&self, a: &[f32], packed: &[f32], panel: usize, sums: &mut [f32]) {
        let (width, small) = (self.panel(), self.small_weights());
        assert!(panel * width < self.n && a.len() >= self.m * self.k, "panel {panel} of {self:?}");
        let sums = &mut sums[..self.m * width];
        let (factors, b) = match small {
            Some(small) => small.panel_of(self, packed, panel),
            None => (&[][..], &packed[panel * width * self.k..][..width * self.k]),
        };
        let multiply = few_rows(self, self.m).expect("`has_panel_sums` said so");
        let (a, b) = (Src::new(a), Src::new(b));
        // SAFETY: A has m rows of k, the panel k steps, and `sums` room for m rows, as just checked.
        unsafe { multiply(&FewRowsArgs { a, row: self.k, k: self.k, b, sums: Dst::new(sums) }) }
        for row in sums.chunks_exact_mut(width) {
            row.iter_mut().zip(factors).for_each(|(sum, factor)| *sum *= factor);
        }
    }
}
