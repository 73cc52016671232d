//! Values that depend on parameters alone: the expressions that a plan knows, and the contents that
//! it keeps.

use super::Fingerprint;
use crate::ir::Value;
use mxrt_engine::Failure;
use mxrt_engine::cache::SharedBytes;
use mxrt_engine::memory::Block;
use mxrt_engine::{ForkSafeMutex as Mutex, ForkSafeRwLock as RwLock};
use mxrt_ops::{Kernel, Unpack};
use mxrt_tensor::TensorType;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Variable, version and offset of a parameter. Equal keys mean equal contents.
pub type ValueKey = (u64, u64, usize);

/// A node whose inputs are all constant.
pub struct ConstNode {
    pub kernel: Box<dyn Kernel>,
    pub op: &'static str,
    pub name: Arc<str>,
    pub inputs: Vec<Value>,
    pub outputs: Vec<TensorType>,
    /// fingerprint of the function from inputs to outputs
    pub computation: Fingerprint,
}

/// A packed form of constant inputs, made by the kernel of a step of the plan.
pub struct ConstPack {
    /// step whose kernel packs
    pub step: usize,
    /// constant values to be packed
    pub inputs: Vec<Value>,
    /// fingerprint of the way in which they are packed
    pub method: Fingerprint,
}

/// One constant that the steps of a plan read.
pub enum ConstSource {
    /// a value of a constant node
    Value(Value),
    /// a packing
    Pack(ConstPack),
}

impl ConstSource {
    /// The values from which the constant is made.
    pub fn values(&self) -> &[Value] {
        match self {
            ConstSource::Value(value) => std::slice::from_ref(value),
            ConstSource::Pack(packing) => &packing.inputs,
        }
    }

    /// The fingerprint of the packing, if there is one.
    fn method(&self) -> Option<Fingerprint> {
        match self {
            ConstSource::Value(_) => None,
            ConstSource::Pack(packing) => Some(packing.method),
        }
    }

    /// The fingerprint of the content, or of the expression, made of the fingerprints of the
    /// values.
    pub fn fingerprint(&self, of_value: impl Fn(&Value) -> Fingerprint) -> Fingerprint {
        let values: SmallVec<[Fingerprint; 2]> = self.values().iter().map(of_value).collect();
        Fingerprint::of((self.method(), values))
    }
}

/// A constant of a plan.
pub struct ConstSlot {
    pub source: ConstSource,
    /// the expression; equal for plans of the same symbol that need the same constant
    pub expression: Fingerprint,
    /// bytes of the content
    pub bytes: usize,
}

/// Computed content of a slot.
pub struct ConstBlock {
    memory: ConstMemory,
    bytes: usize,
}

enum ConstMemory {
    /// memory of this process
    Pool(Block),
    /// a file that several processes map
    Shared(SharedBytes),
}

impl ConstBlock {
    /// Takes the first `bytes` of a block that is at least as long.
    pub fn new(block: Block, bytes: usize) -> ConstBlock {
        ConstBlock { memory: ConstMemory::Pool(block), bytes }
    }

    /// Takes a content that other processes have, too.
    pub fn shared(content: SharedBytes) -> ConstBlock {
        let bytes = content.as_slice().len();
        ConstBlock { memory: ConstMemory::Shared(content), bytes }
    }

    /// The content.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            ConstMemory::Pool(block) => &block.as_slice()[..self.bytes],
            ConstMemory::Shared(content) => content.as_slice(),
        }
    }

    /// Bytes of memory, which other processes may use, too.
    pub fn held(&self) -> usize {
        match &self.memory {
            ConstMemory::Pool(block) => block.len(),
            ConstMemory::Shared(content) => content.as_slice().len(),
        }
    }

    /// Gives the memory to the system instead of keeping it for the next block.
    pub fn give_back(self) {
        if let ConstMemory::Pool(block) = self.memory {
            block.give_back();
        }
    }
}

/// The constants of a plan for one state of the parameters.
pub struct ConstSet {
    pub keys: Vec<ValueKey>,
    /// blocks by slot; a slot without one has a failure
    pub blocks: Vec<Option<Arc<ConstBlock>>>,
    /// failures by slot; empty if nothing has failed
    pub failures: Vec<Option<Failure>>,
    /// whether the set is complete and `is_fresh` has not been called
    pub fresh: AtomicBool,
}

impl ConstSet {
    /// Returns true once, for a complete set.
    pub fn is_fresh(&self) -> bool {
        self.fresh.load(Ordering::Relaxed) && self.fresh.swap(false, Ordering::Relaxed)
    }
}

/// The sets that a plan remembers, the newest first.
#[derive(Default)]
pub struct RememberedSets {
    pub sets: SmallVec<[Arc<ConstSet>; REMEMBERED]>,
    /// keys of whole sets of parameters that were looked up before, each with the position of its
    /// set
    pub known: SmallVec<[((u64, u64), usize); REMEMBERED]>,
}

impl RememberedSets {
    pub fn get(&self, keys: &[ValueKey]) -> Option<usize> {
        self.sets.iter().position(|s| s.keys == keys)
    }

    /// Adds a set. Returns the keys in it that have replaced older ones.
    pub fn insert(&mut self, set: Arc<ConstSet>) -> Vec<ValueKey> {
        let mut written = Vec::new();
        // No request will ask for an older version of the same arrays: versions only grow.
        self.sets.retain(|old| {
            let gone = outdated(&old.keys, &set.keys);
            if gone {
                written.extend(old.keys.iter().zip(&set.keys).filter(|(old, new)| old != new).map(|(_, new)| *new));
            }
            !gone
        });
        self.sets.insert(0, set);
        self.sets.truncate(REMEMBERED);
        self.known.clear();
        written
    }

    /// Removes and returns the sets that hold older versions of these contents.
    pub fn take_older(&mut self, written: &[ValueKey]) -> Vec<Arc<ConstSet>> {
        let older = |key: &ValueKey| written.iter().any(|new| (new.0, new.2) == (key.0, key.2) && new.1 > key.1);
        let (gone, left): (Vec<_>, Vec<_>) = self.sets.drain(..).partition(|set| set.keys.iter().any(older));
        self.sets.extend(left);
        self.known.clear();
        gone
    }
}

/// States of the parameters that a plan remembers. It needs several only if callers pass their own
/// weights, or if a model is on several devices.
pub const REMEMBERED: usize = 4;

/// The constant part of a plan.
pub struct ConstPlan {
    pub nodes: HashMap<usize, ConstNode>,
    pub slots: Vec<ConstSlot>,
    /// inputs of the graph that any slot depends on, in ascending order, and their types
    pub params: Vec<(usize, TensorType)>,
    /// constant nodes in ascending order: a node reads only earlier ones
    pub sequence: Vec<usize>,
    /// slots in the order in which they are computed: those of the same node one after another, so
    /// that its values are not kept for long
    pub order: Vec<usize>,
    /// constant nodes that no slot after each place in that order needs
    pub ends: Vec<Vec<usize>>,
    pub remembered: Arc<RwLock<RememberedSets>>,
    pub computing: Mutex<()>,
}

/// Whether the old set has the same arrays as the new one, at versions that are not newer.
fn outdated(old: &[ValueKey], new: &[ValueKey]) -> bool {
    old.iter().zip(new).all(|(old, new)| (old.0, old.2) == (new.0, new.2) && old.1 <= new.1)
}

/// A parameter and the packing that contains it.
pub struct PackedParam {
    /// input of the graph
    pub input: usize,
    /// key of the content that was packed
    pub key: ValueKey,
    pub packed: Arc<ConstBlock>,
    pub unpacker: Box<dyn Unpack>,
}

impl PackedParam {
    /// Gives the parameter its number in an outer graph. `None` if that graph does not release it.
    pub fn of_outer(self, number: &dyn Fn(usize) -> Option<usize>) -> Option<PackedParam> {
        Some(PackedParam { input: number(self.input)?, ..self })
    }
}
