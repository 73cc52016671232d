//! Random programs from several threads. From the versions that every op met a serial order is
//! rebuilt (versions without gaps, no cycle, program order kept) and replayed in a sequential
//! interpreter: values and failures must agree.

use super::*;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

#[derive(Clone, Debug)]
struct Program {
    id: usize,
    kind: OpKind,
    reads: Vec<usize>,
    writes: Vec<(usize, Access)>,
    fault: Fault,
    cost: Cost,
    asynchronous: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    Error,
    Panic,
}

fn mix(a: u64, b: u64) -> u64 {
    let x = (a ^ b.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^ (x >> 31)
}

/// One op in `rarity` fails by itself.
fn random_op(r: &mut Random, vars: usize, id: usize, rarity: u64) -> Program {
    let kind = match r.below(100) {
        0..75 => OpKind::Strict,
        75..90 => OpKind::Selective,
        _ => OpKind::NoSkip,
    };
    let (n_reads, n_writes) = (r.below(6) as usize, r.below(5) as usize);
    let mut picked = Vec::new();
    while picked.len() < (n_reads + n_writes).min(vars) {
        let v = r.below(vars as u64) as usize;
        if !picked.contains(&v) {
            picked.push(v);
        }
    }
    let at = n_reads.min(picked.len());
    let writes =
        picked[at..].iter().map(|&v| (v, if r.below(2) == 0 { Access::Write } else { Access::Update })).collect();
    let fault = match (kind, r.below(rarity * 8)) {
        (OpKind::Strict, 0) => Fault::Panic,
        (OpKind::Strict, 1..8) => Fault::Error,
        _ => Fault::None,
    };
    let asynchronous = kind == OpKind::Strict && fault != Fault::Panic && r.below(10) == 0;
    Program {
        id,
        kind,
        reads: picked[..at].to_vec(),
        writes,
        fault,
        cost: [Cost::Small, Cost::Medium, Cost::Large][r.below(3) as usize],
        asynchronous,
    }
}

/// Whether write `j` of a selective op depends on its read `i`.
fn depends(id: usize, j: usize, i: usize) -> bool {
    mix(id as u64, (j * 8 + i) as u64).is_multiple_of(3)
}

#[derive(Clone, Default, Debug, PartialEq)]
struct Value {
    bits: u64,
    failed: Option<usize>,
    version: u64,
}

/// The outcome that an op computes from its inputs: the values it writes, the failures of its
/// writes by origin, and a hash of everything it saw. `None`: it does not run. The engine's ops
/// call this as well, so the test checks the order and the failures.
fn compute(op: &Program, value: impl Fn(usize) -> u64, failed: impl Fn(usize) -> Option<usize>) -> Outcome {
    let mut out = Outcome { seen: op.id as u64, writes: Vec::new() };
    match op.kind {
        OpKind::Strict => {
            let mut h = op.id as u64;
            op.reads.iter().for_each(|&r| h = mix(h, value(r)));
            op.writes.iter().filter(|w| w.1 == Access::Update).for_each(|w| h = mix(h, value(w.0)));
            out.seen = h;
            out.writes = (0..op.writes.len()).map(|j| Ok(mix(h, j as u64))).collect();
        }
        _ => {
            for (j, &(w, access)) in op.writes.iter().enumerate() {
                let (mut h, mut bad) = (mix(op.id as u64, j as u64), None);
                for (i, &r) in
                    op.reads.iter().enumerate().filter(|x| op.kind == OpKind::Selective && depends(op.id, j, x.0))
                {
                    match failed(r) {
                        Some(_) => bad = bad.or(Some(i)),
                        None => h = mix(h, value(r)),
                    }
                }
                if access == Access::Update && failed(w).is_none() {
                    h = mix(h, value(w));
                }
                out.writes.push(bad.map_or(Ok(h), Err));
                out.seen = mix(out.seen, h);
            }
        }
    }
    out
}

struct Outcome {
    seen: u64,
    /// The new value, or the number of the read whose failure is passed on.
    writes: Vec<Result<u64, usize>>,
}

/// The reference: runs one op on a sequential state; returns what it saw, if it ran.
fn interpret(state: &mut [Value], op: &Program) -> Option<u64> {
    let before = state.to_vec();
    for &(w, _) in &op.writes {
        state[w].version += 1;
    }
    if op.kind == OpKind::Strict {
        let needed = op.reads.iter().copied().chain(op.writes.iter().filter(|w| w.1 == Access::Update).map(|w| w.0));
        let origin = needed.filter_map(|v| before[v].failed).next();
        if let Some(origin) = origin {
            op.writes.iter().for_each(|w| state[w.0].failed = Some(origin));
            return None;
        }
    }
    let out = compute(op, |v| before[v].bits, |v| before[v].failed);
    for (&(w, access), new) in op.writes.iter().zip(&out.writes) {
        match new {
            _ if op.fault != Fault::None => state[w].failed = Some(op.id),
            Err(read) => state[w].failed = before[op.reads[*read]].failed,
            Ok(bits) => {
                state[w].bits = *bits;
                if access == Access::Write {
                    state[w].failed = None;
                }
            }
        }
    }
    Some(out.seen)
}

/// The values the engine's ops work on, without locks: the engine must order every access.
struct Cells {
    values: Vec<UnsafeCell<u64>>,
    seen: Vec<UnsafeCell<Option<u64>>>,
}

// SAFETY: what the engine orders does not race; if it did not order, the comparison (or a
// sanitizer) would tell.
unsafe impl Sync for Cells {}

fn run_op(cells: &Cells, op: &Program, ctx: &RunCtx<'_>) -> Result<(), OpError> {
    let of = |v: usize| {
        let read = op.reads.iter().position(|&r| r == v);
        read.unwrap_or_else(|| op.reads.len() + op.writes.iter().position(|w| w.0 == v).unwrap())
    };
    // SAFETY: see `Cells`.
    let out = compute(op, |v| unsafe { *cells.values[v].get() }, |v| ctx.failure_of(of(v)).map(|_| 0));
    // SAFETY: each op has its own place.
    unsafe { *cells.seen[op.id].get() = Some(out.seen) };
    for (j, (&(w, _), new)) in op.writes.iter().zip(&out.writes).enumerate() {
        let bits = match new {
            _ if op.fault != Fault::None => 0xDEAD,
            Ok(bits) => *bits,
            Err(read) => {
                ctx.fail_write(op.reads.len() + j, ctx.failure_of(*read).unwrap());
                continue;
            }
        };
        // SAFETY: see `Cells`.
        unsafe { *cells.values[w].get() = bits };
    }
    match op.fault {
        Fault::None => Ok(()),
        Fault::Error => Err(error("planned")),
        Fault::Panic => std::panic::panic_any("planned"),
    }
}

/// The accesses of the ops: op, access, version. It has its own lock, because ThreadSanitizer does
/// not see the order given by a contended lock of the standard library.
#[derive(Default)]
struct Log {
    busy: AtomicBool,
    entries: UnsafeCell<Vec<(usize, usize, u64)>>,
}

// SAFETY: `busy` lets one thread at a time to the entries.
unsafe impl Sync for Log {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Log {}

impl Log {
    fn with<R>(&self, f: impl FnOnce(&mut Vec<(usize, usize, u64)>) -> R) -> R {
        while self.busy.swap(true, Acquire) {
            std::thread::yield_now();
        }
        // SAFETY: this thread has set `busy`.
        let result = f(unsafe { &mut *self.entries.get() });
        self.busy.store(false, Release);
        result
    }
    fn push(&self, entry: (usize, usize, u64)) {
        self.with(|entries| entries.push(entry));
    }
    fn take(&self) -> Vec<(usize, usize, u64)> {
        self.with(std::mem::take)
    }
}

fn push(engine: &'static Engine, vars: &[Var], cells: &Arc<Cells>, op: &Program) {
    let mut accesses: Vec<_> = op.reads.iter().map(|&r| (&vars[r], Access::Read)).collect();
    accesses.extend(op.writes.iter().map(|w| (&vars[w.0], w.1)));
    let spec = OpSpec::new(op.id.to_string(), &accesses).kind(op.kind);
    let spec = spec.cost(op.cost).device(DeviceId::cpu(op.id as u16 % 3));
    // Where and when an op runs must not matter.
    let lane = [Lane::Normal, Lane::Priority, Lane::CopyIn, Lane::CopyOut][(mix(op.id as u64, 1) % 16 / 4) as usize];
    let spec = spec.lane(lane).priority(mix(op.id as u64, 2) as i32 % 3);
    let (cells, body) = (cells.clone(), op.clone());
    if op.asynchronous {
        engine.push_async(spec, move |ctx, token| token.complete(run_op(&cells, &body, ctx)));
    } else {
        engine.push(spec, move |ctx| run_op(&cells, &body, ctx));
    }
}

/// Runs a random program of `threads * per_thread` ops and compares it with the interpreter;
/// returns how many ops failed or were skipped. Uses the trace hook of the process: one program at
/// a time.
pub fn check_one(
    kind: EngineKind,
    cores: usize,
    threads: usize,
    per_thread: usize,
    n_vars: usize,
    rarity: u64,
    seed: u64,
) -> usize {
    let what = format!("{kind}, {cores} cores, {threads} threads, {n_vars} variables, seed {seed}");
    let engine = start(kind, cores);
    let n = threads * per_thread;
    let vars: Vec<Var> = (0..n_vars).map(|_| engine.new_var()).collect();
    let cells = Arc::new(Cells {
        values: (0..n_vars).map(|_| UnsafeCell::new(0)).collect(),
        seen: (0..n).map(|_| UnsafeCell::new(None)).collect(),
    });
    let trace: Arc<Log> = Arc::default();
    let log = trace.clone();
    testing::set_trace(Some(Box::new(move |name, access, version| {
        log.push((name.parse().unwrap(), access, version));
    })));
    let programs: Vec<Program> = std::thread::scope(|s| {
        let pushers: Vec<_> = (0..threads)
            .map(|t| {
                let (vars, cells) = (&vars, &cells);
                s.spawn(move || {
                    let mut r = Random(mix(seed, t as u64) | 1);
                    let ops = (0..per_thread).map(|k| {
                        let op = random_op(&mut r, n_vars, t * per_thread + k, rarity);
                        push(engine, vars, cells, &op);
                        if r.below(500) == 0 {
                            let _ = engine.wait_to_read(&vars[r.below(n_vars as u64) as usize]);
                        }
                        if r.below(2000) == 0 {
                            let _ = engine.wait_all();
                        }
                        op
                    });
                    ops.collect::<Vec<_>>()
                })
            })
            .collect();
        pushers.into_iter().flat_map(|p| p.join().unwrap()).collect()
    });
    let _ = engine.wait_all();
    testing::set_trace(None);
    let trace = trace.take();
    let order = serial_order(&programs, &trace, n_vars, threads, per_thread, &what);

    let mut state = vec![Value::default(); n_vars];
    let mut failed_ops = 0;
    for id in order {
        let expected = interpret(&mut state, &programs[id]);
        // SAFETY: everything is complete.
        let got = unsafe { *cells.seen[id].get() };
        assert_eq!(got, expected, "{what}: op {:?}", programs[id]);
        failed_ops += usize::from(expected.is_none() || programs[id].fault != Fault::None);
    }
    for (i, (var, expected)) in vars.iter().zip(&state).enumerate() {
        let failed = match engine.wait_to_read(var) {
            Err(WaitError::Failed(f)) => Some(f.op().parse().unwrap()),
            Ok(()) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!((failed, var.version()), (expected.failed, expected.version), "{what}: variable {i}");
        if failed.is_none() {
            // SAFETY: everything is complete.
            assert_eq!(unsafe { *cells.values[i].get() }, expected.bits, "{what}: variable {i}");
        }
    }
    failed_ops
}

/// An order of the ops that agrees with every version they met and with the order of each thread's
/// pushes.
fn serial_order(
    programs: &[Program],
    trace: &[(usize, usize, u64)],
    n_vars: usize,
    threads: usize,
    per_thread: usize,
    what: &str,
) -> Vec<usize> {
    let n = programs.len();
    let mut writes: Vec<Vec<(u64, usize)>> = vec![vec![]; n_vars];
    let mut reads = writes.clone();
    for &(id, access, version) in trace {
        let op = &programs[id];
        match access.checked_sub(op.reads.len()) {
            None => reads[op.reads[access]].push((version, id)),
            Some(j) => writes[op.writes[j].0].push((version, id)),
        }
    }
    let mut after: Vec<Vec<usize>> = vec![vec![]; n];
    let mut before = vec![0; n];
    let mut edge = |a: usize, b: usize| {
        after[a].push(b);
        before[b] += 1;
    };
    for (v, writes) in writes.iter_mut().enumerate() {
        writes.sort();
        for (k, w) in writes.iter().enumerate() {
            assert_eq!(w.0, k as u64 + 1, "{what}: a version of variable {v} is missing or double");
        }
        writes.windows(2).for_each(|w| edge(w[0].1, w[1].1));
        for &(version, id) in &reads[v] {
            let version = version as usize;
            if version > 0 {
                edge(writes[version - 1].1, id);
            }
            if let Some(next) = writes.get(version) {
                edge(id, next.1);
            }
        }
    }
    for t in 0..threads {
        (1..per_thread).for_each(|k| edge(t * per_thread + k - 1, t * per_thread + k));
    }
    let mut ready: Vec<usize> = (0..n).filter(|&i| before[i] == 0).collect();
    let mut order = Vec::new();
    while let Some(i) = ready.pop() {
        order.push(i);
        for &j in &after[i] {
            before[j] -= 1;
            if before[j] == 0 {
                ready.push(j);
            }
        }
    }
    assert_eq!(order.len(), n, "{what}: no serial order exists");
    order
}

/// Keeps planned panics out of the output.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"planned") {
            eprintln!("{info}");
        }
    }));
}
