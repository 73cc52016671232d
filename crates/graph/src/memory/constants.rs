//! What depends on parameters alone: folded and packed weights, computed once per version of the
//! parameters.
//!
//! Every plan of a [`crate::CachedOp`] names its constants by expression. The blocks live in one
//! cache, keyed by expression and by the versions of the parameters in it, so plans for other batch
//! sizes share them; they are looked up when a request starts, and a `set_data` makes the next
//! request compute what depends on it anew.

use crate::ir::Value;
use crate::run::execute::PlanRequest;
use mxrt_engine::memory::{Block, MemoryPool};
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_engine::{ForkSafeMutex as Mutex, ForkSafeRwLock as RwLock};
use mxrt_ops::{Kernel, KernelCall};
use mxrt_tensor::{TensorMut, TensorRef, TensorType};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Variable, version and offset of a parameter: equal keys, equal content.
pub type ValueKey = (u64, u64, usize);

/// A node whose inputs are all constant.
pub struct ConstNode {
    pub kernel: Box<dyn Kernel>,
    pub op: &'static str,
    pub name: Arc<str>,
    pub inputs: Vec<Value>,
    pub outputs: Vec<TensorType>,
}

/// Where the packed form of constant inputs comes from: the kernel of a step of the plan.
pub struct ConstPack {
    /// step whose kernel packs
    pub step: usize,
    /// constant values to be packed
    pub inputs: Vec<Value>,
}

/// One constant that the steps of a plan read.
pub enum ConstSource {
    /// a value of a constant node
    Value(Value),
    /// a packing
    Pack(ConstPack),
}

impl ConstSource {
    /// The values that it is made of.
    fn values(&self) -> &[Value] {
        match self {
            ConstSource::Value(value) => std::slice::from_ref(value),
            ConstSource::Pack(packing) => &packing.inputs,
        }
    }
}

/// A constant of a plan.
pub struct ConstSlot {
    pub source: ConstSource,
    /// the expression, spelt out: equal for plans of the same symbol that need the same thing
    pub key: String,
    /// inputs of the graph in the expression
    pub params: Vec<usize>,
    /// bytes of the content
    pub bytes: usize,
}

/// Computed content of a slot.
pub struct ConstBlock {
    block: Block,
    bytes: usize,
}

impl ConstBlock {
    pub fn bytes(&self) -> &[u8] {
        &self.block.as_slice()[..self.bytes]
    }
}

/// The constants of a plan for one state of the parameters.
pub struct ConstSet {
    keys: Vec<ValueKey>,
    /// by slot; where there is none, there is a failure
    pub blocks: Vec<Option<Arc<ConstBlock>>>,
    /// by slot; empty when nothing has failed
    pub failures: Vec<Option<Failure>>,
    /// complete, and not yet asked for
    fresh: AtomicBool,
}

impl ConstSet {
    /// True once, for a complete set.
    pub fn is_fresh(&self) -> bool {
        self.fresh.load(Ordering::Relaxed) && self.fresh.swap(false, Ordering::Relaxed)
    }
}

/// The sets that a plan remembers, the newest first.
#[derive(Default)]
struct RememberedSets {
    sets: SmallVec<[Arc<ConstSet>; REMEMBERED]>,
    /// sets of parameters as a whole that were looked up before, and which of the sets they need
    known: SmallVec<[((u64, u64), usize); REMEMBERED]>,
}

impl RememberedSets {
    fn get(&self, keys: &[ValueKey]) -> Option<usize> {
        self.sets.iter().position(|s| s.keys == keys)
    }

    fn insert(&mut self, set: Arc<ConstSet>) {
        // No call asks for an older version of the same arrays again: versions only grow.
        self.sets.retain(|old| !outdated(&old.keys, &set.keys));
        self.sets.insert(0, set);
        self.sets.truncate(REMEMBERED);
        self.known.clear();
    }
}

struct CachedConst {
    keys: Vec<ValueKey>,
    block: Weak<ConstBlock>,
}

/// Shared by all plans of a `CachedOp`. Holds no block alive itself: plans do.
#[derive(Default)]
pub struct ConstCache {
    entries: Mutex<HashMap<String, Vec<CachedConst>>>,
}

impl ConstCache {
    fn find(&self, slot: &ConstSlot, keys: &[ValueKey]) -> Option<Arc<ConstBlock>> {
        let entries = self.entries.lock();
        entries.get(&slot.key)?.iter().find(|c| c.keys == keys).and_then(|c| c.block.upgrade())
    }

    /// Forgets what no plan holds any more.
    pub fn sweep(&self) {
        self.entries.lock().retain(|_, cached| {
            cached.retain(|c| c.block.strong_count() > 0);
            !cached.is_empty()
        });
    }

    fn insert(&self, slot: &ConstSlot, keys: Vec<ValueKey>, block: &Arc<ConstBlock>) {
        let mut entries = self.entries.lock();
        let cached = entries.entry(slot.key.clone()).or_default();
        cached.retain(|c| c.block.strong_count() > 0);
        cached.push(CachedConst { keys, block: Arc::downgrade(block) });
    }
}

/// States of the parameters that a plan remembers; more than one only where callers pass their own
/// weights, or where a model is on several devices.
const REMEMBERED: usize = 4;

/// The constant part of a plan.
pub struct ConstPlan {
    pub nodes: HashMap<usize, ConstNode>,
    pub slots: Vec<ConstSlot>,
    /// inputs of the graph that any slot depends on
    pub params: Vec<usize>,
    /// slots as they are computed: those of the same node one after another, so that its values
    /// need not be kept for long
    order: Vec<usize>,
    /// by constant node: the last place in that order that needs it
    last_use: HashMap<usize, usize>,
    cache: Arc<ConstCache>,
    remembered: RwLock<RememberedSets>,
    computing: Mutex<()>,
}

/// Packs constant inputs with the kernel of the step that asks for it.
pub type Packer<'a> = dyn Fn(&ConstPack, &[TensorRef<'_>]) -> Result<ConstBlock, OpError> + 'a;

/// Whether a set is of the same arrays, some of which have been written since.
fn outdated(old: &[ValueKey], new: &[ValueKey]) -> bool {
    old.iter().zip(new).all(|(old, new)| (old.0, old.2) == (new.0, new.2) && old.1 <= new.1)
}

impl ConstPlan {
    pub fn new(nodes: HashMap<usize, ConstNode>, slots: Vec<ConstSlot>, cache: Arc<ConstCache>) -> ConstPlan {
        let mut params: Vec<usize> = slots.iter().flat_map(|s| s.params.iter().copied()).collect();
        params.sort_unstable();
        params.dedup();
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_by_key(|s| slots[*s].source.values().iter().map(|value| value.node()).max());
        let last_use = last_uses(&nodes, order.iter().map(|s| slots[*s].source.values()));
        let (remembered, computing) = (RwLock::default(), Mutex::new(()));
        ConstPlan { nodes, slots, params, order, last_use, cache, remembered, computing }
    }

    /// The constants for the parameters as they are now. `pack` packs with the kernel of a step.
    pub fn current(&self, request: &PlanRequest<'_>, pack: &Packer<'_>) -> Arc<ConstSet> {
        if let Some(all) = request.inputs.params_key() {
            let remembered = self.remembered.read();
            if let Some((_, set)) = remembered.known.iter().find(|(key, _)| *key == all) {
                return remembered.sets[*set].clone();
            }
        }
        let keys: Vec<ValueKey> = self.params.iter().map(|p| request.inputs.key(*p)).collect();
        if let Some(set) = self.look_up(request, &keys) {
            return set;
        }
        let _one_at_a_time = self.computing.lock();
        if let Some(set) = self.look_up(request, &keys) {
            return set;
        }
        let set = Arc::new(self.compute(request, keys, pack));
        if set.failures.is_empty() {
            self.remembered.write().insert(set.clone());
        }
        set
    }

    fn look_up(&self, request: &PlanRequest<'_>, keys: &[ValueKey]) -> Option<Arc<ConstSet>> {
        let remembered = self.remembered.read();
        let at = remembered.get(keys)?;
        let set = remembered.sets[at].clone();
        drop(remembered);
        // A parameter that is not among the constants may have been written since, or a set was
        // made of the same arrays.
        if let Some(all) = request.inputs.params_key() {
            let mut remembered = self.remembered.write();
            if let Some(at) = remembered.get(keys) {
                remembered.known.retain(|(key, _)| key.0 != all.0);
                remembered.known.truncate(REMEMBERED - 1);
                remembered.known.insert(0, (all, at));
            }
        }
        Some(set)
    }

    /// Adds the bytes of every block that this plan keeps, by address: plans share blocks.
    pub fn held(&self, blocks: &mut HashMap<*const ConstBlock, usize>) {
        for set in &self.remembered.read().sets {
            blocks.extend(set.blocks.iter().flatten().map(|b| (Arc::as_ptr(b), b.block.len())));
        }
    }

    /// Bytes of its own, about.
    pub fn own_bytes(&self) -> usize {
        let slots: usize = self.slots.iter().map(|s| size_of::<ConstSlot>() + s.key.len() + 8 * s.params.len()).sum();
        slots + self.nodes.len() * 2 * size_of::<ConstNode>()
    }

    /// What cannot be computed fails the steps that read it, and is not remembered.
    fn compute(&self, request: &PlanRequest<'_>, keys: Vec<ValueKey>, pack: &Packer<'_>) -> ConstSet {
        let mut made = MadeConsts { plan: self, request, values: HashMap::new() };
        let (blocks, failures) = (vec![None; self.slots.len()], Vec::new());
        let mut set = ConstSet { keys, blocks, failures, fresh: AtomicBool::new(false) };
        for (place, s) in self.order.iter().enumerate() {
            match self.slot(&self.slots[*s], &mut made, pack) {
                Ok(block) => set.blocks[*s] = Some(block),
                Err(failure) => {
                    set.failures.resize(self.slots.len(), None);
                    set.failures[*s] = Some(failure);
                }
            }
            made.drop_unused(place);
        }
        *set.fresh.get_mut() = set.failures.is_empty();
        set
    }

    fn slot(&self, slot: &ConstSlot, made: &mut MadeConsts<'_>, pack: &Packer<'_>) -> Result<Arc<ConstBlock>, Failure> {
        let inputs = made.request.inputs;
        if let Some(failure) = slot.params.iter().find_map(|p| inputs.failure(*p)) {
            return Err(failure.clone());
        }
        let keys: Vec<ValueKey> = slot.params.iter().map(|p| inputs.key(*p)).collect();
        if let Some(block) = self.cache.find(slot, &keys) {
            return Ok(block);
        }
        let block = match &slot.source {
            ConstSource::Value(value) => made.value(*value),
            ConstSource::Pack(packing) => made.pack(packing, pack).map(Arc::new),
        };
        let block = block.map_err(|error| made.request.site.failure(error))?;
        self.cache.insert(slot, keys, &block);
        Ok(block)
    }
}

/// For every constant node, the last place in the order of slots that needs it.
fn last_uses<'a>(
    nodes: &HashMap<usize, ConstNode>,
    in_order: impl Iterator<Item = &'a [Value]>,
) -> HashMap<usize, usize> {
    let mut last = HashMap::new();
    for (place, values) in in_order.enumerate() {
        let mut open = values.to_vec();
        while let Some(value) = open.pop() {
            // Seen for this slot already: so were the nodes behind it.
            if let Some(n) = value.node()
                && last.insert(n, place) != Some(place)
                && let Some(node) = nodes.get(&n)
            {
                open.extend(&node.inputs);
            }
        }
    }
    last
}

/// Constant values computed so far, of which some slot still to come is made.
struct MadeConsts<'a> {
    plan: &'a ConstPlan,
    request: &'a PlanRequest<'a>,
    values: HashMap<Value, (TensorType, Arc<ConstBlock>)>,
}

impl MadeConsts<'_> {
    /// Gives back what no slot behind this place is made of. Folded weights that have been packed
    /// go to the system: they are as large as the parameters, and such blocks are not needed again
    /// soon.
    fn drop_unused(&mut self, place: usize) {
        let last_use = &self.plan.last_use;
        let unused = |value: &Value| value.node().and_then(|n| last_use.get(&n)).is_none_or(|last| *last <= place);
        for (_, (_, block)) in self.values.extract_if(|value, _| unused(value)) {
            if let Ok(block) = Arc::try_unwrap(block) {
                block.block.give_back();
            }
        }
    }

    fn value(&mut self, value: Value) -> Result<Arc<ConstBlock>, OpError> {
        if let Value::Node(n, _) = value
            && !self.values.contains_key(&value)
        {
            self.run(n)?;
        }
        match self.values.get(&value) {
            Some((_, block)) => Ok(block.clone()),
            None => Err(OpError::new(FailureKind::Operator, format!("{value} is not a constant of this plan"))),
        }
    }

    /// Runs a constant node after the ones it reads. Chains of constant nodes are short (folding
    /// makes one or two).
    fn run(&mut self, n: usize) -> Result<(), OpError> {
        let Some(node) = self.plan.nodes.get(&n) else { return Ok(()) };
        for input in &node.inputs {
            if let Value::Node(m, _) = input
                && !self.values.contains_key(input)
            {
                self.run(*m)?;
            }
        }
        let mut blocks = Vec::with_capacity(node.outputs.len());
        for t in &node.outputs {
            blocks.push(allocate(self.request.site.memory(), t.bytes())?);
        }
        {
            let inputs = self.refs(&node.inputs)?;
            let mut outputs: Vec<TensorMut<'_>> = node
                .outputs
                .iter()
                .zip(&mut blocks)
                .map(|(t, b)| TensorMut::new(t.dtype, &t.shape, &mut b.as_mut_slice()[..t.bytes()]))
                .collect();
            let mut workspace = allocate(self.request.site.memory(), node.kernel.workspace())?;
            let packed = match node.kernel.packing() {
                None => None,
                Some(packing) => {
                    let chosen: Vec<TensorRef<'_>> =
                        packing.inputs().iter().filter_map(|i| inputs.get(*i).copied()).collect();
                    let mut block = allocate(self.request.site.memory(), packing.bytes())?;
                    packing.pack(&chosen, &mut block.as_mut_slice()[..packing.bytes()])?;
                    Some(block)
                }
            };
            let mut call = KernelCall {
                par: self.request.site.par(),
                inputs: &inputs,
                outputs: &mut outputs,
                workspace: &mut workspace.as_mut_slice()[..node.kernel.workspace()],
                packed: packed.as_ref().map(|b| b.as_slice()),
                shared: None,
                random: None,
            };
            node.kernel.run(&mut call).map_err(|e| e.op(node.op).node(&*node.name))?;
        }
        for (o, (t, block)) in node.outputs.iter().zip(blocks).enumerate() {
            let made = Arc::new(ConstBlock { block, bytes: t.bytes() });
            self.values.insert(Value::Node(n, o), (t.clone(), made));
        }
        Ok(())
    }

    fn refs(&self, values: &[Value]) -> Result<Vec<TensorRef<'_>>, OpError> {
        values
            .iter()
            .map(|v| match v {
                Value::Input(i) => self.request.inputs.tensor(*i),
                Value::Node(..) => match self.values.get(v) {
                    Some((t, b)) => Ok(TensorRef::new(t.dtype, &t.shape, b.bytes())),
                    None => Err(OpError::new(FailureKind::Operator, "a constant is read before it is made")),
                },
            })
            .collect()
    }

    fn pack(&mut self, packing: &ConstPack, pack: &Packer<'_>) -> Result<ConstBlock, OpError> {
        for value in &packing.inputs {
            if matches!(value, Value::Node(..)) {
                self.value(*value)?;
            }
        }
        pack(packing, &self.refs(&packing.inputs)?)
    }
}

/// A block from the pool, or the error of kind `Memory`.
pub fn allocate(memory: &'static MemoryPool, bytes: usize) -> Result<Block, OpError> {
    memory.alloc(bytes).map_err(|e| OpError::new(FailureKind::Memory, e.to_string()))
}

/// Packs with `kernel`, into a block of its own.
pub fn pack_with(
    kernel: &dyn Kernel,
    memory: &'static MemoryPool,
    inputs: &[TensorRef<'_>],
) -> Result<ConstBlock, OpError> {
    let Some(packing) = kernel.packing() else {
        return Err(OpError::new(FailureKind::Operator, "the kernel of a packed step does not pack"));
    };
    let mut block = allocate(memory, packing.bytes())?;
    packing.pack(inputs, &mut block.as_mut_slice()[..packing.bytes()])?;
    Ok(ConstBlock { block, bytes: packing.bytes() })
}
