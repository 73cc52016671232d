//! Operator calls and symbol files made by structure: the table of operators says which attributes
//! there are and what they take, so that most of what is made computes something.
//!
//! `tests/interface/structured_inputs.rs` draws them from seeds, the fuzz targets `calls` and `graphs`
//! from bytes.

pub mod calls;
pub mod graphs;

use mxrt::internal::{Config, Engine, FailureKind, WaitError};
use mxrt::types::TensorType;
use mxrt::{Context, DType, NDArray, Shape};
use std::sync::LazyLock;

/// A source of decisions: a number below another one, which is not 0.
pub struct Choices<'a>(pub &'a mut dyn FnMut(usize) -> usize);

impl Choices<'_> {
    /// A number below this one, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.0)(bound)
    }

    /// True once in `times` times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// The number of repetitions: one more with a chance of one in `times`, and at most [`MOST`],
    /// because decisions from bytes are alike when the bytes have ended.
    pub fn repeats(&mut self, times: usize) -> usize {
        (0..MOST).take_while(|_| self.once_in(times)).count()
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// A number that no call needs.
const ODD_NUMBERS: [&str; 10] = [
    "-3",
    "100",
    "65536",
    "2147483647",
    "-2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "1e400",
    "nan",
    "99999999999999999999",
];

/// A file has no more further results than this, and no more broken places.
const MOST: usize = 8;

/// Memory that generated work may take: a number in an attribute must end in an error.
const MEMORY: usize = 96 << 20;

/// The engine of generated work.
pub fn engine() -> &'static Engine {
    static ENGINE: LazyLock<&'static Engine> = LazyLock::new(|| {
        let engine = Engine::start(Config { cores: Some(1), ..Config::default() }).expect("an engine");
        engine.memory().set_limit(Some(MEMORY));
        engine
    });
    *ENGINE
}

/// Whether there are results. A panic is never an answer, also one that became a failure.
fn have_values(results: &[NDArray]) -> bool {
    let read = |result: &NDArray| match result.read() {
        Ok(_) => true,
        Err(WaitError::Failed(failure)) => {
            assert_ne!(failure.kind(), FailureKind::Panic, "{failure}");
            false
        }
        Err(_) => false,
    };
    results.iter().all(read)
}

/// An array of small numbers of either sign, whole ones where others do not fit.
fn filled(choices: &mut Choices<'_>, tensor: &TensorType) -> Option<NDArray> {
    const FEW: [f32; 8] = [0.0, 1.0, 2.0, 0.5, -1.0, 3.0, 0.25, -0.5];
    let bytes = tensor.checked_bytes().filter(|bytes| *bytes <= 1 << 20)?;
    let first = choices.below(FEW.len());
    let content: Vec<u8> = match tensor.dtype {
        DType::F32 => (0..bytes / 4).flat_map(|i| FEW[(first + i) % FEW.len()].to_ne_bytes()).collect(),
        DType::F64 => (0..bytes / 8).flat_map(|i| f64::from(FEW[(first + i) % FEW.len()]).to_ne_bytes()).collect(),
        // Small whole numbers, and as bits small floats.
        _ => (0..bytes).map(|i| if i % tensor.dtype.size() == 0 { ((first + i) % 4) as u8 } else { 0 }).collect(),
    };
    NDArray::from_bytes(engine(), Context::cpu(0), tensor.clone(), &content).ok()
}

/// A shape of so many axes that no one minds computing with.
fn small_shape(choices: &mut Choices<'_>) -> Shape {
    const COMMON: [&[usize]; 8] =
        [&[2, 4, 6, 6], &[4], &[2, 4], &[2, 3, 4], &[1, 3, 8, 8], &[1, 2, 3, 4, 4], &[3, 3], &[1]];
    if !choices.once_in(8) {
        return Shape::new(choices.pick(&COMMON));
    }
    (0..choices.below(6)).map(|_| choices.pick(&[1, 2, 3, 5, 0, 17])).collect()
}
