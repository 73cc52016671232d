//! The cache of bound operators that imperative calls look into first.

use super::KernelOptions;
use super::bound_operator::BoundOperator;
use crate::definition::{Attrs, OpDef};
use mxrt_engine::OpError;
use mxrt_tensor::NDArray;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Attributes as a call gives them.
#[derive(Clone, Copy, Debug)]
pub enum CallAttrs<'a> {
    /// names and text
    Text(&'a [(String, String)]),
    /// `scalar`, and nothing else
    Scalar(f64),
}

impl CallAttrs<'_> {
    pub(crate) fn parse(self, def: &OpDef) -> Result<Attrs, OpError> {
        match self {
            CallAttrs::Text(pairs) => def.parse_attrs(pairs.iter().map(|(k, v)| (k.as_str(), v.as_str()))),
            CallAttrs::Scalar(number) => def.parse_attrs([("scalar", format!("{number:?}").as_str())]),
        }
    }

    /// Whether the attribute is given.
    pub(crate) fn names(self, attribute: &str) -> bool {
        matches!(self, CallAttrs::Text(pairs) if pairs.iter().any(|(name, _)| name == attribute))
    }

    fn mix(self, mut hash: u64) -> u64 {
        match self {
            CallAttrs::Scalar(number) => mix(hash, number.to_bits()),
            CallAttrs::Text(pairs) => {
                for (name, text) in pairs {
                    hash = text.bytes().chain(name.bytes()).fold(hash, |h, byte| mix(h, u64::from(byte)));
                }
                hash
            }
        }
    }
}

/// [`CallAttrs`] as a cache holds them.
enum CachedAttrs {
    Text(SmallVec<[(String, String); 2]>),
    Scalar(u64),
}

impl CachedAttrs {
    fn equals(&self, given: CallAttrs<'_>) -> bool {
        match (self, given) {
            (CachedAttrs::Text(cached), CallAttrs::Text(given)) => **cached == *given,
            (CachedAttrs::Scalar(bits), CallAttrs::Scalar(number)) => *bits == number.to_bits(),
            _ => false,
        }
    }
}

impl From<CallAttrs<'_>> for CachedAttrs {
    fn from(given: CallAttrs<'_>) -> CachedAttrs {
        match given {
            CallAttrs::Text(pairs) => CachedAttrs::Text(pairs.iter().cloned().collect()),
            CallAttrs::Scalar(number) => CachedAttrs::Scalar(number.to_bits()),
        }
    }
}

struct CachedOperator {
    given: CachedAttrs,
    options: KernelOptions,
    bound: Arc<BoundOperator>,
}

impl CachedOperator {
    fn matches(&self, def: &OpDef, given: CallAttrs<'_>, options: KernelOptions) -> bool {
        std::ptr::eq(self.bound.def, def) && self.options == options && self.given.equals(given)
    }
}

/// A cache of the operators bound by recent calls, so that the same call again need not parse,
/// infer and choose. It has a fixed number of slots; an operator replaces the one in its slot.
pub struct BoundOperatorCache {
    slots: Box<[Mutex<Option<CachedOperator>>]>,
}

/// Slots of a cache; a power of two.
const SLOTS: usize = 256;

impl Default for BoundOperatorCache {
    fn default() -> Self {
        BoundOperatorCache { slots: (0..SLOTS).map(|_| Mutex::new(None)).collect() }
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn slot_of(def: &OpDef, given: CallAttrs<'_>, inputs: &[&NDArray]) -> usize {
    let mut hash = given.mix(std::ptr::from_ref(def).addr() as u64);
    for array in inputs {
        hash = mix(hash, array.dtype() as u64);
        hash = array.shape().iter().fold(hash, |h, n| mix(h, *n as u64));
    }
    (hash >> 32) as usize % SLOTS
}

impl BoundOperatorCache {
    /// The operator bound to these arguments.
    pub(crate) fn get(
        &self,
        def: &'static OpDef,
        given: CallAttrs<'_>,
        options: KernelOptions,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
    ) -> Result<Arc<BoundOperator>, OpError> {
        let slot = &self.slots[slot_of(def, given, inputs)];
        // A slot that another thread is using is no reason to wait, nor one whose user was lost in
        // a fork.
        if let Some(cached) = slot.try_lock()
            && let Some(entry) = cached.as_ref()
            && entry.matches(def, given, options)
            && entry.bound.takes(inputs)
            && entry.bound.makes(outputs)
        {
            return Ok(entry.bound.clone());
        }
        let attrs = given.parse(def)?;
        // What is cached must not depend on arrays of `out=`; they may fit what is made without
        // them.
        match BoundOperator::new(def, attrs.clone(), options, inputs, None) {
            Ok(bound) if bound.makes(outputs) => {
                let bound = Arc::new(bound);
                let entry = CachedOperator { given: CachedAttrs::from(given), options, bound: bound.clone() };
                let old = slot.try_lock().and_then(|mut cached| cached.replace(entry));
                drop(old);
                Ok(bound)
            }
            Err(error) if outputs.is_none() => Err(error),
            _ => Ok(Arc::new(BoundOperator::new(def, attrs, options, inputs, outputs)?)),
        }
    }
}

impl std::fmt::Debug for BoundOperatorCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BoundOperatorCache of {SLOTS}")
    }
}
