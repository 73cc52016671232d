//! Kernels take memory whose size follows from their arrays from whoever runs them, which counts it
//! and may refuse it: `mxrt_kernels::Scratch`.

mod common;

use common::{Contents, input_types, output_types, run, shapes, variants};
use mxrt_engine::{Config, Engine, FailureKind, WaitError};
use mxrt_kernels::Par;
use mxrt_kernels::scratch::Memory;
use mxrt_ops::{Attrs, Invocation, KernelOptions, OpDef, RandomState, Signature, bind_kernel, invoke, registry};
use mxrt_tensor::{Context, DType, NDArray, Shape, TensorType};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The system, whose largest allocation of this thread is noted while a kernel runs.
struct Watched;

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    if WATCHED.get() {
        LARGEST.set(LARGEST.get().max(bytes));
    }
}

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Runs something and notes allocations meanwhile, or doesn't.
fn watching<R>(watched: bool, body: impl FnOnce() -> R) -> R {
    let before = WATCHED.replace(watched);
    let result = body();
    WATCHED.set(before);
    result
}

/// Memory of a kernel.
struct Lines(Vec<[u64; 8]>);

impl Lines {
    fn new(bytes: usize) -> Lines {
        Lines(watching(false, || vec![[0; 8]; bytes / 64 + 2]))
    }
}

impl Memory for Lines {
    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.0);
        let start = bytes.as_ptr().align_offset(64);
        &mut bytes[start..]
    }
}

/// Runs chunks in order, and gives memory that is not noted.
struct Counted;

impl Par for Counted {
    fn run(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        let mut scratch = Lines::new(scratch_bytes);
        (0..chunks).for_each(|chunk| body(chunk, scratch.bytes_mut()));
    }

    fn memory(&self, bytes: usize) -> Box<dyn Memory> {
        Box::new(Lines::new(bytes))
    }
}

/// Elements of the arrays. What has a byte for each of them is larger than [`LEAST`].
const ELEMENTS: usize = 1 << 13;
/// Bytes from which on an allocation follows from the arrays.
const LEAST: usize = 6 << 10;

/// Operators whose kernels allocate by the size of their arrays, and why they may.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("LRN", CHUNKS),
    ("RNN", PACKED),
    ("_linalg_det", PACKED),
    ("_linalg_gelqf", PACKED),
    ("_linalg_gemm2", PACKED),
    ("_linalg_inverse", PACKED),
    ("_linalg_makediag", CHUNKS),
    ("_linalg_maketrian", CHUNKS),
    ("_linalg_potrf", PACKED),
    ("_linalg_potri", PACKED),
    ("_linalg_slogdet", PACKED),
    ("_linalg_syevd", PACKED),
    ("_linalg_syrk", PACKED),
    ("_linalg_trmm", PACKED),
    ("_linalg_trsm", PACKED),
    ("_np_dot", PACKED),
    ("_npi_cholesky", PACKED),
    ("_npi_eig", PACKED),
    ("_npi_eigh", PACKED),
    ("_npi_eigvals", PACKED),
    ("_npi_eigvalsh", PACKED),
    ("_npi_norm", PACKED),
    ("_npi_pinv", PACKED),
    ("_npi_pinv_scalar_rcond", PACKED),
    ("_npi_solve", PACKED),
    ("_npi_svd", PACKED),
    ("_npi_tensordot", PACKED),
    ("_npi_tensorinv", PACKED),
    ("_npi_tensorsolve", PACKED),
    ("batch_dot", PACKED),
];

const CHUNKS: &str = "a byte for each chunk, which has one element of these shapes";
const PACKED: &str = "a packed operand; where it is refused, the product is computed without";

/// Operators whose time grows faster than their arrays: one shape and the defaults of attributes.
const SLOW: &[&str] = &["_npi_norm", "_npi_svd", "_npi_pinv", "_npi_pinv_scalar_rcond", "_npi_polyval"];

/// Whether this test can make up attributes: not those of passes, and of operators of programs.
fn is_tried(op: &OpDef) -> bool {
    !op.name.starts_with("_blocked_") && !op.name.to_lowercase().contains("custom")
}

/// Large shapes of the first inputs: those that suit any operator, and the small ones of an operator
/// grown along their first axis, or along all.
fn large_shapes(op: &OpDef) -> Vec<Vec<Shape>> {
    let any: [&[usize]; 6] = [&[ELEMENTS], &[ELEMENTS, 1], &[64, 128], &[2, 4, 32, 32], &[1, 64, 128], &[90, 92]];
    if SLOW.contains(&op.name) {
        return vec![vec![Shape::new(&[64, 128]), Shape::new(&[])]];
    }
    let mut all: Vec<Vec<Shape>> = any.into_iter().map(|s| vec![Shape::new(s)]).collect();
    for small in shapes(op).into_iter().filter(|given| given.iter().any(|s| s.size() > 0)) {
        let size = small.iter().map(|s| s.size()).max().unwrap_or(1);
        let first = small[0].first().copied().unwrap_or(1);
        let along_first = |shape: &Shape| -> Shape {
            let dims = shape.iter().enumerate();
            dims.map(|(axis, n)| if axis == 0 && *n == first { n * ELEMENTS.div_ceil(size) } else { *n }).collect()
        };
        all.push(small.iter().map(along_first).collect());
        let times = if small[0].len() > 2 { 8 } else { 24 };
        all.push(small.iter().map(|shape| shape.iter().map(|n| n * times).collect()).collect());
    }
    all
}

/// Largest allocation of a kernel on such inputs, if there is one.
fn largest_allocation(op: &OpDef, attrs: &Attrs, given: &[Shape], dtype: DType) -> Option<usize> {
    let inputs = input_types(op, attrs, given, dtype)?;
    let small = |t: &TensorType| t.checked_bytes().is_some_and(|bytes| bytes < 64 * ELEMENTS);
    if !inputs.iter().all(small) {
        return None;
    }
    LARGEST.set(0);
    let around = |go: &mut dyn FnMut()| watching(true, go);
    let outputs = output_types(&Counted, op, attrs, &inputs, Contents::small_numbers, &around)?;
    if !outputs.iter().all(small) {
        return None;
    }
    let signature = Signature { inputs: &inputs, outputs: &outputs, options: KernelOptions::default() };
    let kernel = bind_kernel(op, attrs, &signature).ok()?;
    run(&Counted, &*kernel, &signature, Contents::small_numbers, &around);
    Some(LARGEST.get())
}

#[test]
fn no_kernel_allocates_by_the_size_of_its_arrays() {
    let found: Mutex<BTreeMap<&str, (usize, String)>> = Mutex::default();
    let (ops, tried) = (registry().ops(), Mutex::new(0));
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (found, tried) = (&found, &tried);
            scope.spawn(move || {
                for op in ops.iter().skip(part).step_by(2).filter(|op| is_tried(op)) {
                    let all = if SLOW.contains(&op.name) { 1 } else { usize::MAX };
                    for (i, attrs) in variants(op).iter().take(all).enumerate() {
                        // Other element types are converted alike, whatever the attributes.
                        let dtypes = if i == 0 { &[DType::F32, DType::I32, DType::F16][..] } else { &[DType::F32] };
                        for (given, dtype) in large_shapes(op).iter().flat_map(|s| dtypes.iter().map(move |d| (s, *d)))
                        {
                            let Some(bytes) = largest_allocation(op, attrs, given, dtype) else { continue };
                            *tried.lock().expect("no thread panics") += 1;
                            let mut found = found.lock().expect("no thread panics");
                            if bytes >= LEAST && found.get(op.name).is_none_or(|known| known.0 < bytes) {
                                found.insert(op.name, (bytes, format!("{dtype} {given:?} {:?}", attrs.pairs())));
                            }
                        }
                    }
                }
            });
        }
    });
    let tried = tried.into_inner().expect("no thread panics");
    assert!(tried > 1000, "only {tried} calls ran");
    let mut found = found.into_inner().expect("no thread panics");
    // Which products pack an operand depends on the processor.
    found.retain(|name, _| EXCEPTIONS.iter().all(|(known, _)| known != name));
    assert!(
        found.is_empty(),
        "these allocate by themselves; take `Scratch`, or say in EXCEPTIONS why they may: {found:#?}"
    );
}

#[test]
fn the_memory_limit_covers_scratch_and_the_error_names_the_operator() {
    let engine = Engine::start(Config::default()).expect("the engine starts");
    let random = RandomState::new(1);
    let how = Invocation { engine, context: Context::cpu(0), options: KernelOptions::default(), random: &random };
    let data: Vec<f32> = (0..1 << 20).map(|i| (i % 1000) as f32).collect();
    let array = |shape: &[usize]| {
        NDArray::from_slice(engine, Context::cpu(0), shape, &data).expect("there is memory for the arrays")
    };
    type Call<'a> = (&'a str, &'a [(&'a str, &'a str)], usize);
    let calls: [Call<'_>; 10] = [
        ("_npi_std", &[("axis", "(0,)")], 1),
        ("_npi_percentile", &[("q_scalar", "50")], 1),
        ("_npi_average", &[("axis", "(1,)")], 2),
        ("_npi_norm", &[("flag", "-2")], 1),
        ("norm", &[("out_dtype", "float64")], 1),
        ("_np_any", &[], 1),
        ("_npi_choice", &[("a", "None"), ("size", "(3,)"), ("replace", "False"), ("weighted", "True")], 2),
        ("moments", &[("axes", "(0, 1)")], 1),
        ("softmax_cross_entropy", &[], 1),
        ("_square_sum", &[("axis", "1")], 1),
    ];
    for (name, given, inputs) in calls {
        let def = registry().get(name).unwrap_or_else(|| panic!("there is no operator {name}"));
        let attrs = def.parse_attrs(given.iter().copied()).expect("the attributes are right");
        let flat = name == "_npi_choice";
        let mut arrays: Vec<NDArray> =
            (0..inputs).map(|_| array(if flat { &[1 << 20] } else { &[1 << 10, 1 << 10] })).collect();
        if name == "softmax_cross_entropy" {
            let labels = vec![0f32; 1 << 10];
            arrays.push(NDArray::from_slice(engine, Context::cpu(0), [1 << 10], &labels).expect("there is memory"));
        }
        let arrays: Vec<&NDArray> = arrays.iter().collect();
        let call = || -> Result<(), WaitError> {
            let made = invoke(&how, def, &attrs, &arrays, None).expect("the call is right");
            made.iter().try_for_each(|array| array.to_bytes().map(|_| ()))
        };
        engine.wait_all().expect("the arrays are there");
        engine.memory().trim();
        let before = engine.memory().stats().in_use;
        engine.memory().set_limit(Some(before + (1 << 20)));
        let refused = call();
        engine.memory().set_limit(None);
        let Err(WaitError::Failed(failure)) = refused else { panic!("{name} ran with too little memory") };
        let text = failure.to_string();
        assert_eq!(failure.kind(), FailureKind::Memory, "{text}");
        assert!(
            text.contains("of scratch memory: the memory limit is") && failure.op() == def.name,
            "{text} in {}",
            failure.op()
        );
        let _ = engine.wait_all();
        call().unwrap_or_else(|error| panic!("without the limit {name} runs: {error:?}"));
        assert_eq!(engine.memory().stats().in_use, before, "{name} gave its scratch back");
    }
}
