//! The steps of an encoder layer of BERT-base in float32, with weights that come from memory as in
//! the network: least and median microseconds of each, and multiply-adds in a nanosecond.
//!
//! `cargo bench -p mxrt-kernels --bench bert [TOKENS] [BATCH] [THREADS] [ROUNDS] [ISA]`. One thread
//! is timed by processor time, two by the clock, which needs an idle machine.

use mxrt_kernels::aligned::AlignedVec;
use mxrt_kernels::attention::{Attention, AttentionOperands};
use mxrt_kernels::elementwise::{Unary, unary_inplace};
use mxrt_kernels::gemm::{ElementFunction, Epilogue, Matrices, MatricesMut, Matrix, Places, Sgemm};
use mxrt_kernels::isa::Isa;
use mxrt_kernels::norm::layer_norm_of_sum;
use mxrt_kernels::par::{Par, Serial};
use mxrt_kernels::scratch::Memory;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Layers whose weights take turns: 28 MB each.
const LAYERS: usize = 4;
const UNITS: usize = 768;
const HEADS: usize = 12;
const HIDDEN: usize = 3072;
const STEPS: [&str; 7] = ["queries, keys, values", "attention", "output", "norm", "hidden, gelu", "units", "norm"];

/// Runs chunks in one thread or two, which stay awake, and keeps memory as the engine does.
struct Team {
    loops: Arc<Loops>,
    scratch: Mutex<AlignedVec>,
    kept: Arc<Mutex<Vec<AlignedVec>>>,
    threads: usize,
}

/// The loop that runs.
struct Loops {
    /// Loops begun, and ended by the second thread.
    begun: AtomicUsize,
    ended: AtomicUsize,
    next: AtomicUsize,
    current: Mutex<Option<Current>>,
}

#[derive(Clone, Copy)]
struct Current {
    chunks: usize,
    scratch_bytes: usize,
    body: &'static (dyn Fn(usize, &mut [u8]) + Sync),
}

impl Loops {
    fn chunks(&self, scratch: &mut AlignedVec) {
        let Some(Current { chunks, scratch_bytes, body }) = *self.current.lock().unwrap() else { return };
        let needed = scratch_bytes.div_ceil(size_of::<f32>());
        if scratch.len() < needed {
            *scratch = AlignedVec::zeroed(needed);
        }
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return;
            }
            body(chunk, &mut bytemuck::cast_slice_mut(&mut scratch[..needed])[..scratch_bytes]);
        }
    }

    fn help(&self) {
        let (mut seen, mut scratch) = (0, AlignedVec::zeroed(0));
        loop {
            let begun = self.begun.load(Ordering::Acquire);
            if begun == seen {
                std::hint::spin_loop();
                continue;
            }
            seen = begun;
            self.chunks(&mut scratch);
            self.ended.store(seen, Ordering::Release);
        }
    }
}

impl Team {
    fn new(threads: usize) -> Team {
        let [begun, ended, next] = [const { AtomicUsize::new(0) }; 3];
        let loops = Arc::new(Loops { begun, ended, next, current: Mutex::new(None) });
        if threads > 1 {
            let loops = loops.clone();
            std::thread::spawn(move || loops.help());
        }
        Team { loops, scratch: Mutex::new(AlignedVec::zeroed(0)), kept: Arc::default(), threads }
    }
}

impl Par for Team {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        // SAFETY: no thread uses the body after this function, which waits for the other one.
        let body = unsafe { std::mem::transmute::<&(dyn Fn(usize, &mut [u8]) + Sync), &'static _>(body) };
        *self.loops.current.lock().unwrap() = Some(Current { chunks, scratch_bytes, body });
        self.loops.next.store(0, Ordering::Relaxed);
        let begun = self.loops.begun.fetch_add(1, Ordering::AcqRel) + 1;
        self.loops.chunks(&mut self.scratch.lock().unwrap());
        while self.threads > 1 && self.loops.ended.load(Ordering::Acquire) != begun {
            std::hint::spin_loop();
        }
    }

    fn parallelism(&self) -> usize {
        self.threads
    }

    fn memory(&self, bytes: usize) -> Box<dyn Memory> {
        let mut kept = self.kept.lock().unwrap();
        let fits = kept.iter().position(|block| size_of_val(&block[..]) >= bytes);
        let block = fits.map(|at| kept.swap_remove(at));
        let block = block.unwrap_or_else(|| AlignedVec::zeroed(bytes.div_ceil(size_of::<f32>())));
        Box::new(Lent { block, kept: self.kept.clone() })
    }
}

/// Memory that goes back to the team.
struct Lent {
    block: AlignedVec,
    kept: Arc<Mutex<Vec<AlignedVec>>>,
}

impl Memory for Lent {
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.block)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let block = std::mem::replace(&mut self.block, AlignedVec::zeroed(0));
        self.kept.lock().unwrap().push(block);
    }
}

/// The instruction set named by an argument, or the best.
fn isa() -> Isa {
    std::env::args().find_map(|word| word.parse().ok()).unwrap_or(Isa::detect())
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 37 % 101) as f32 / 101.0 - 0.5).collect()
}

/// Zeros in huge pages where the system has them, as in the engine's arenas; never freed.
fn huge(len: usize) -> &'static mut [f32] {
    const PAGE: usize = 2 << 20;
    let bytes = (len * size_of::<f32>()).next_multiple_of(PAGE);
    let layout = std::alloc::Layout::from_size_align(bytes, PAGE).expect("a size");
    // SAFETY: the memory is fresh, large enough, zeroed after the advice, and never freed.
    unsafe {
        let start = std::alloc::alloc(layout);
        libc::madvise(start.cast(), layout.size(), libc::MADV_HUGEPAGE);
        start.write_bytes(0, layout.size());
        std::slice::from_raw_parts_mut(start.cast(), len)
    }
}

fn clock(id: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

struct Dense {
    gemm: Sgemm,
    packed: &'static [f32],
    bias: Vec<f32>,
}

impl Dense {
    fn new([m, n, k]: [usize; 3]) -> Dense {
        let gemm = Sgemm::with_weights(m, n, k, isa());
        let packed = huge(gemm.packed_len());
        let weights: Vec<f32> = values(n * k).iter().map(|v| v / (k as f32).sqrt()).collect();
        gemm.pack(Matrix::rows(&weights, k).transposed(), packed);
        Dense { gemm, packed, bias: values(n) }
    }

    fn run(&self, par: &dyn Par, x: &[f32], function: Option<ElementFunction<'_>>, out: &mut [f32]) {
        let (n, k) = (self.gemm.columns(), self.gemm.depth());
        let epilogue = Epilogue { bias: Some(&self.bias), function, ..Epilogue::default() };
        self.gemm.run(Matrix::rows(x, k), self.packed, epilogue, out, n, &mut [], par);
    }
}

/// Attention on queries, keys and values of all heads of a token side by side.
fn attend(par: &dyn Par, [tokens, batch]: [usize; 2], joined: &[f32], out: &mut [f32]) {
    let d = UNITS / HEADS;
    let attention = Attention {
        batch: [batch, HEADS],
        queries: tokens,
        keys: tokens,
        depth: d,
        width: d,
        scale: 0.125,
        isa: isa(),
        tiles: false,
    };
    let of = |i: usize| {
        let at = Places { first: i * d, batch: [3 * UNITS, 3 * d], row: batch * 3 * UNITS, column: 1 };
        Matrices { data: joined, at }
    };
    let operands = AttentionOperands { queries: of(0), keys: of(1), values: of(2), mask: None, lengths: None };
    let at = Places { first: 0, batch: [UNITS, d], row: batch * UNITS, column: 1 };
    attention.run(par, operands, MatricesMut { data: out, at });
}

/// Best and median.
fn summary(times: &mut [f64]) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2]]
}

fn main() {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let arg = |i: usize, or: usize| args.get(i).copied().unwrap_or(or);
    let (tokens, batch, threads, rounds) = (arg(0, 128), arg(1, 1), arg(2, 1), arg(3, 10));
    let m = tokens * batch;
    let sizes = [[3 * UNITS, UNITS], [UNITS, UNITS], [HIDDEN, UNITS], [UNITS, HIDDEN]];
    let layers: Vec<[Dense; 4]> = (0..LAYERS).map(|_| sizes.map(|[n, k]| Dense::new([m, n, k]))).collect();
    let par = Team::new(threads);
    let id = if threads == 1 { libc::CLOCK_THREAD_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
    let (gamma, beta) = (values(UNITS), values(UNITS));
    let (x, rest) = huge(m * (6 * UNITS + HIDDEN)).split_at_mut(m * UNITS);
    x.copy_from_slice(&values(m * UNITS));
    let (joined, rest) = rest.split_at_mut(3 * m * UNITS);
    let (y, rest) = rest.split_at_mut(m * UNITS);
    let (z, hidden) = rest.split_at_mut(m * UNITS);
    let gelu = |x: &mut [f32]| unary_inplace(&Serial, Unary::Gelu, x);
    let mut times: [Vec<f64>; 8] = Default::default();
    for layer in (0..rounds).flat_map(|_| &layers) {
        let mut at = vec![clock(id)];
        layer[0].run(&par, x, None, joined);
        at.push(clock(id));
        attend(&par, [tokens, batch], joined, y);
        at.push(clock(id));
        layer[1].run(&par, y, None, z);
        at.push(clock(id));
        layer_norm_of_sum(&par, [x, z], &gamma, &beta, 1e-12, y);
        at.push(clock(id));
        layer[2].run(&par, y, Some(ElementFunction(&gelu)), hidden);
        at.push(clock(id));
        layer[3].run(&par, hidden, None, z);
        at.push(clock(id));
        layer_norm_of_sum(&par, [y, z], &gamma, &beta, 1e-12, x);
        at.push(clock(id));
        (0..7).for_each(|i| times[i].push(at[i + 1] - at[i]));
        times[7].push(at[7] - at[0]);
    }
    let units = (m * UNITS) as f64;
    let dense = |[n, k]: [usize; 2]| (m * n * k) as f64;
    let attention = 2.0 * units * tokens as f64;
    let work = [dense(sizes[0]), attention, dense(sizes[1]), 0.0, dense(sizes[2]), dense(sizes[3]), 0.0];
    let [all, median] = summary(&mut times[7]);
    for (i, step) in STEPS.iter().enumerate() {
        let [least, median] = summary(&mut times[i]);
        let (share, rate) = (100.0 * least / all, work[i] / least / 1e3);
        println!("{step:<22} {least:9.1} {median:9.1} us {share:5.1} % {rate:6.1} / ns");
    }
    let rate = work.iter().sum::<f64>() / all / 1e3;
    println!("{tokens} x {batch}, {threads} threads        {all:9.1} {median:9.1} us {rate:6.1} / ns");
}
