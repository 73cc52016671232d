//! Computes values that depend on parameters alone (folded and packed weights), once per version of
//! the parameters.
//!
//! A plan names its constants by expression. When a request starts, the expression and the versions
//! of its parameters give the fingerprint of the content. All plans of the process share blocks by
//! fingerprint ([`SHARED`]). After a `set_data` the next request computes again what depends on it.

use super::kept::files_of;
use super::offsets::ordered;
use super::shared::SHARED;
use crate::ir::Value;
use crate::plan::{
    ConstBlock, ConstNode, ConstPack, ConstPlan, ConstSet, ConstSlot, ConstSource, Fingerprint, PlanRequest,
    REMEMBERED, RunSite, ValueKey,
};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::memory::{Block, MemoryPool};
use mxrt_engine::{Failure, FailureKind, OpError};
use mxrt_ops::{Kernel, KernelCall, catch_refusal};
use mxrt_tensor::{TensorMut, TensorRef, TensorType};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Packs constant inputs with the kernel of the step that reads them.
pub type Packer<'a> = dyn Fn(&ConstPack, &[TensorRef<'_>]) -> Result<ConstBlock, OpError> + 'a;

impl ConstPlan {
    /// Orders the slots so that constant values are kept as briefly as possible. `inputs` are the
    /// types of the graph's inputs.
    pub fn new(nodes: HashMap<usize, ConstNode>, slots: Vec<ConstSlot>, inputs: &[TensorType]) -> ConstPlan {
        let last = |slot: &ConstSlot| slot.source.values().iter().map(|value| value.node().map_or(0, |n| n + 1)).max();
        let order = ordered(slots.len(), |s| [last(&slots[s]).unwrap_or(0), 0]);
        let in_order: Vec<&[Value]> = order.iter().map(|s| slots[*s].source.values()).collect();
        let UsedValues { ends, params } = UsedValues::of(&nodes, &in_order);
        let params = params.into_iter().filter_map(|p| Some((p, inputs.get(p)?.clone()))).collect();
        let mut sequence: Vec<usize> = ends.iter().flatten().copied().collect();
        sequence.sort_unstable();
        let remembered = Arc::default();
        SHARED.register(&remembered);
        ConstPlan { nodes, slots, params, sequence, order, ends, remembered, computing: Mutex::new(()) }
    }

    /// The constants for the current parameters. `pack` packs with the kernel of a step.
    pub fn current(&self, request: &PlanRequest<'_>, pack: &Packer<'_>) -> Arc<ConstSet> {
        if let Some(all) = request.inputs.params_key() {
            let remembered = self.remembered.read();
            if let Some((_, set)) = remembered.known.iter().find(|(key, _)| *key == all) {
                return remembered.sets[*set].clone();
            }
        }
        let keys: Vec<ValueKey> = self.params.iter().map(|(p, _)| request.inputs.key(*p)).collect();
        if let Some(set) = self.look_up(request, &keys) {
            return set;
        }
        let _one_at_a_time = self.computing.lock();
        if let Some(set) = self.look_up(request, &keys) {
            return set;
        }
        let set = Arc::new(self.compute(request, keys, pack));
        if set.failures.is_empty() {
            let written = self.remembered.write().insert(set.clone());
            if !written.is_empty() {
                SHARED.forget_older(&written);
            }
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

    /// Adds the bytes of every block that this plan keeps, by address, because plans share blocks.
    pub fn held(&self, blocks: &mut HashMap<*const ConstBlock, usize>) {
        for set in &self.remembered.read().sets {
            blocks.extend(set.blocks.iter().flatten().map(|b| (Arc::as_ptr(b), b.held())));
        }
    }

    /// Approximate size of the structure itself, without blocks.
    pub fn own_bytes(&self) -> usize {
        let slots = self.slots.len() * 2 * size_of::<ConstSlot>();
        slots + self.nodes.len() * 2 * size_of::<ConstNode>()
    }

    /// Computes all constants. One that cannot be computed fails the steps that read it, and the
    /// set is not remembered.
    fn compute(&self, request: &PlanRequest<'_>, keys: Vec<ValueKey>, pack: &Packer<'_>) -> ConstSet {
        let contents = Contents::new(self, request, &keys);
        let mut made = MadeConsts { plan: self, request, values: HashMap::new(), lasting: HashMap::new() };
        let (blocks, failures) = (vec![None; self.slots.len()], Vec::new());
        let mut set = ConstSet { keys, blocks, failures, fresh: AtomicBool::new(false) };
        for (place, s) in self.order.iter().enumerate() {
            match slot(&self.slots[*s], &contents, &mut made, pack) {
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
}

/// Finds or computes the block of a slot.
fn slot(
    slot: &ConstSlot,
    contents: &Contents,
    made: &mut MadeConsts<'_>,
    pack: &Packer<'_>,
) -> Result<Arc<ConstBlock>, Failure> {
    let source = &slot.source;
    let failed = source.values().iter().filter_map(|value| contents.of(*value).failed).min();
    if let Some(failure) = failed.and_then(|input| made.request.inputs.failure(input)) {
        return Err(failure.clone());
    }
    // Blocks belong to the pool of an engine.
    let pool = std::ptr::from_ref(made.request.site.memory()).addr();
    let content = Fingerprint::of((pool, source.fingerprint(|value| contents.of(*value).fingerprint)));
    SHARED.get_or_compute(content, || {
        let block = match files_of(slot.bytes) {
            Some(files) => made
                .lasting_name(source)
                .and_then(|name| files.get_or_compute(name, slot.bytes, || made.content(source, pack))),
            None => made.content(source, pack),
        };
        block.map_err(|error| made.request.site.failure(error))
    })
}

/// Contents of constant values, for one state of the parameters.
struct Contents {
    inputs: HashMap<usize, Content>,
    nodes: HashMap<usize, Content>,
}

/// Content of a parameter or a constant node.
#[derive(Clone, Copy)]
struct Content {
    fingerprint: Fingerprint,
    /// first parameter in the expression that has failed
    failed: Option<usize>,
}

impl Contents {
    /// Computes fingerprints of all constant nodes. `keys` are those of the plan's parameters.
    fn new(plan: &ConstPlan, request: &PlanRequest<'_>, keys: &[ValueKey]) -> Contents {
        let of_input = |((input, tensor), key): (&(usize, TensorType), &ValueKey)| {
            let failed = request.inputs.failure(*input).map(|_| *input);
            (*input, Content { fingerprint: Fingerprint::of((key, tensor)), failed })
        };
        let inputs = plan.params.iter().zip(keys).map(of_input).collect();
        let mut contents = Contents { inputs, nodes: HashMap::with_capacity(plan.sequence.len()) };
        for n in &plan.sequence {
            let Some(node) = plan.nodes.get(n) else { continue };
            let inputs: SmallVec<[Content; 8]> = node.inputs.iter().map(|value| contents.of(*value)).collect();
            let of_inputs: SmallVec<[Fingerprint; 8]> = inputs.iter().map(|input| input.fingerprint).collect();
            let fingerprint = Fingerprint::of((node.computation, of_inputs));
            let failed = inputs.iter().filter_map(|input| input.failed).min();
            contents.nodes.insert(*n, Content { fingerprint, failed });
        }
        contents
    }

    fn of(&self, value: Value) -> Content {
        match value {
            Value::Input(i) => self.inputs[&i],
            Value::Node(n, o) => {
                let node = self.nodes[&n];
                Content { fingerprint: Fingerprint::of((node.fingerprint, o)), ..node }
            }
        }
    }
}

/// Values that slots are made of.
struct UsedValues {
    /// constant nodes that each slot, in the order of slots, is the last to need
    ends: Vec<Vec<usize>>,
    /// parameters that some slot depends on
    params: BTreeSet<usize>,
}

impl UsedValues {
    fn of(nodes: &HashMap<usize, ConstNode>, in_order: &[&[Value]]) -> UsedValues {
        let mut used = UsedValues { ends: vec![Vec::new(); in_order.len()], params: BTreeSet::new() };
        let mut seen = HashSet::new();
        // The first place from the end that needs a node is the last one that does.
        for (place, values) in in_order.iter().enumerate().rev() {
            let mut open = values.to_vec();
            while let Some(value) = open.pop() {
                match value {
                    Value::Input(i) => {
                        used.params.insert(i);
                    }
                    Value::Node(n, _) if seen.insert(n) => {
                        used.ends[place].push(n);
                        open.extend(nodes.get(&n).iter().flat_map(|node| &node.inputs));
                    }
                    Value::Node(..) => {}
                }
            }
        }
        used
    }
}

/// Constant values that later slots still need.
struct MadeConsts<'a> {
    plan: &'a ConstPlan,
    request: &'a PlanRequest<'a>,
    values: HashMap<Value, (TensorType, Arc<ConstBlock>)>,
    /// names of values that other processes give to equal contents
    lasting: HashMap<Value, Fingerprint>,
}

impl MadeConsts<'_> {
    /// Gives back the values that no slot after this place needs. Packed folded weights return to
    /// the system: they are as large as the parameters, and such blocks are not needed again soon.
    fn drop_unused(&mut self, place: usize) {
        for n in &self.plan.ends[place] {
            let outputs = self.plan.nodes.get(n).map_or(0, |node| node.outputs.len());
            for (_, block) in (0..outputs).filter_map(|o| self.values.remove(&Value::Node(*n, o))) {
                if let Ok(block) = Arc::try_unwrap(block) {
                    block.give_back();
                }
            }
        }
    }

    fn content(&mut self, source: &ConstSource, pack: &Packer<'_>) -> Result<Arc<ConstBlock>, OpError> {
        match source {
            ConstSource::Value(value) => self.value(*value),
            ConstSource::Pack(packing) => self.pack(packing, pack).map(Arc::new),
        }
    }

    /// The name of a content by the bytes of its parameters.
    fn lasting_name(&mut self, source: &ConstSource) -> Result<Fingerprint, OpError> {
        for value in source.values() {
            // Nodes come after those that they read.
            for n in self.nodes_below(*value, |value| self.lasting.contains_key(value)) {
                let node = &self.plan.nodes[&n];
                let inputs = node.inputs.iter().map(|value| self.lasting_input(*value));
                let inputs = inputs.collect::<Result<SmallVec<[Fingerprint; 8]>, OpError>>()?;
                let name = Fingerprint::of((node.computation, inputs));
                self.lasting.extend((0..node.outputs.len()).map(|o| (Value::Node(n, o), Fingerprint::of((name, o)))));
            }
            self.lasting_input(*value)?;
        }
        Ok(source.fingerprint(|value| self.lasting[value]))
    }

    /// The name of a value whose predecessors have names.
    fn lasting_input(&mut self, value: Value) -> Result<Fingerprint, OpError> {
        if let Some(name) = self.lasting.get(&value) {
            return Ok(*name);
        }
        let Value::Input(input) = value else {
            return Err(OpError::new(FailureKind::Operator, format!("{value} is not a constant of this plan")));
        };
        let tensor = self.request.inputs.tensor(input)?;
        let name = Fingerprint::of((tensor.dtype, tensor.shape, tensor.bytes()));
        self.lasting.insert(value, name);
        Ok(name)
    }

    fn value(&mut self, value: Value) -> Result<Arc<ConstBlock>, OpError> {
        self.run_for(value)?;
        match self.values.get(&value) {
            Some((_, block)) => Ok(block.clone()),
            None => Err(OpError::new(FailureKind::Operator, format!("{value} is not a constant of this plan"))),
        }
    }

    /// Runs the constant node that makes a value, after those of its predecessors that have not
    /// run.
    fn run_for(&mut self, value: Value) -> Result<(), OpError> {
        self.nodes_below(value, |value| self.values.contains_key(value)).into_iter().try_for_each(|n| self.run(n))
    }

    /// The nodes that make a value, in an order in which they can run, without those whose values
    /// are known.
    fn nodes_below(&self, value: Value, known: impl Fn(&Value) -> bool) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if let Value::Node(n, _) = value
                && !known(&value)
                && needed.insert(n)
            {
                open.extend(self.plan.nodes.get(&n).iter().flat_map(|node| &node.inputs));
            }
        }
        // A node reads only earlier ones.
        needed
    }

    /// Runs a constant node whose inputs have been computed.
    fn run(&mut self, n: usize) -> Result<(), OpError> {
        let Some(node) = self.plan.nodes.get(&n) else { return Ok(()) };
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
            let packed = node.kernel.packing().map(|packing| {
                let chosen: Vec<_> = packing.inputs().iter().filter_map(|i| inputs.get(*i).copied()).collect();
                pack_with(&*node.kernel, self.request.site, &chosen)
            });
            let packed = packed.transpose()?;
            let mut call = KernelCall {
                par: self.request.site.par(),
                inputs: &inputs,
                outputs: &mut outputs,
                workspace: &mut workspace.as_mut_slice()[..node.kernel.workspace()],
                packed: packed.as_ref().map(ConstBlock::bytes),
                shared: None,
                random: None,
            };
            catch_refusal(|| node.kernel.run(&mut call)).map_err(|e| e.op(node.op).node(&*node.name))?;
        }
        for (o, (t, block)) in node.outputs.iter().zip(blocks).enumerate() {
            let made = Arc::new(ConstBlock::new(block, t.bytes()));
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
        packing.inputs.iter().try_for_each(|value| self.run_for(*value))?;
        pack(packing, &self.refs(&packing.inputs)?)
    }
}

/// Allocates a block from the pool. Errors have kind `Memory`.
pub fn allocate(memory: &'static MemoryPool, bytes: usize) -> Result<Block, OpError> {
    memory.alloc(bytes).map_err(|e| OpError::new(FailureKind::Memory, e.to_string()))
}

/// Packs with `kernel` into a new block.
pub fn pack_with(kernel: &dyn Kernel, site: &dyn RunSite, inputs: &[TensorRef<'_>]) -> Result<ConstBlock, OpError> {
    let Some(packing) = kernel.packing() else {
        return Err(OpError::new(FailureKind::Operator, "the kernel of a packed step does not pack"));
    };
    let mut block = allocate(site.memory(), packing.bytes())?;
    packing.pack(site.par(), inputs, &mut block.as_mut_slice()[..packing.bytes()])?;
    Ok(ConstBlock::new(block, packing.bytes()))
}
