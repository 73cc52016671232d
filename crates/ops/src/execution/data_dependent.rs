//! Operators whose outputs have shapes that follow from the contents of their inputs.
//!
//! Such an operator looks at its inputs first ([`Rewrites::shapes_of_contents`](crate::Rewrites)) and is
//! bound to the true types then, so that its kernel is one as any other. Imperative calls return
//! results that are deferred.

use super::invoke::{Invocation, context_of};
use super::operator_cache::CallAttrs;
use super::par::catch_refusal;
use super::{EnginePar, KernelCall, KernelOptions, Signature, bind_kernel};
use crate::definition::{Attrs, OpDef, check_inputs, infer_with_shapes};
use mxrt_engine::memory::{Block, MemoryPool};
use mxrt_engine::{Cost, FailureKind, OpError};
use mxrt_kernels::Par;
use mxrt_tensor::{
    Context, DeferredResult, Launch, NDArray, ResultArray, TensorMut, TensorRef, TensorType, describe_inputs, launch,
};
use smallvec::SmallVec;

impl OpDef {
    /// Whether the shapes of its outputs follow from the contents of its inputs.
    pub fn is_data_dependent(&self) -> bool {
        self.rewrites.shapes_of_contents.is_some()
    }
}

/// Runs an operator that [is data-dependent](OpDef::is_data_dependent). Returns its outputs.
pub fn run_data_dependent(
    (def, attrs): (&OpDef, &Attrs),
    options: KernelOptions,
    par: &dyn Par,
    memory: &'static MemoryPool,
    inputs: &[TensorRef<'_>],
) -> Result<Vec<(TensorType, Block)>, OpError> {
    let Some(shapes_of_contents) = def.rewrites.shapes_of_contents else {
        return Err(OpError::new(
            FailureKind::Operator,
            format!("{} has shapes that contents do not decide", def.name),
        ));
    };
    let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|t| TensorType::new(t.dtype, t.shape.clone())).collect();
    let shapes = catch_refusal(|| shapes_of_contents(par, attrs, inputs))?;
    let outputs = infer_with_shapes(def, attrs, &types, &shapes)?;
    let kernel = bind_kernel(def, attrs, &Signature { inputs: &types, outputs: &outputs, options })?;
    let alloc = |bytes| memory.alloc(bytes).map_err(OpError::from);
    let mut blocks = outputs.iter().map(|t| alloc(t.bytes())).collect::<Result<Vec<Block>, OpError>>()?;
    let mut workspace = alloc(kernel.workspace())?;
    {
        let mut views: SmallVec<[TensorMut<'_>; 2]> = outputs
            .iter()
            .zip(&mut blocks)
            .map(|(t, block)| TensorMut::new(t.dtype, &t.shape, &mut block.as_mut_slice()[..t.bytes()]))
            .collect();
        let workspace = &mut workspace.as_mut_slice()[..kernel.workspace()];
        let outputs = &mut views;
        let mut call = KernelCall { par, inputs, outputs, workspace, packed: None, random: None, shared: None };
        catch_refusal(|| kernel.run(&mut call))?;
    }
    Ok(outputs.into_iter().zip(blocks).collect())
}

/// Calls an operator that [is data-dependent](OpDef::is_data_dependent); returns before it has run. The host computes
/// it wherever its inputs are: their shapes must be known there.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke_data_dependent(
    call: &Invocation<'_>,
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
) -> Result<SmallVec<[ResultArray; 2]>, OpError> {
    let context = context_of(call, inputs, None);
    let attrs = given.parse(def)?;
    let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
    let pairs = attrs.pairs();
    let describe =
        move |e: OpError, types: &[TensorType]| describe_inputs(e.op(def.name).attrs(pairs.clone()), types.iter());
    super::bound_operator::check_call(def, &attrs, inputs, None, context)
        .and_then(|()| check_inputs(def, &attrs, &types))
        .map_err(|e| describe(e, &types).device(context.to_string()))?;
    let home = if context.device().is_some() { Context::cpu(0) } else { context };
    let here: SmallVec<[NDArray; 4]> = inputs
        .iter()
        .map(|a| if context.device().is_some() { a.copy_to_context(home) } else { Ok((*a).clone()) })
        .collect::<Result<_, _>>()?;
    let results = (0..def.num_outputs(&attrs))
        .map(|_| DeferredResult::new(call.engine, context, false))
        .collect::<Result<SmallVec<[DeferredResult; 2]>, OpError>>()?;
    let reads: SmallVec<[&NDArray; 4]> = here.iter().collect();
    let writes: SmallVec<[&NDArray; 2]> = results.iter().map(|result| &result.done).collect();
    let places: SmallVec<[_; 2]> = results.iter().map(|result| result.place.clone()).collect();
    let options = call.options;
    let spec = Launch { name: def.name.into(), inputs: &reads, outputs: &writes, cost: Cost::Large };
    launch(call.engine, spec, move |ctx, inputs, _| {
        let engine = ctx.engine();
        let made = run_data_dependent((def, &attrs), options, &EnginePar(ctx), engine.memory(), inputs);
        for (place, (tensor, block)) in places.iter().zip(made.map_err(|e| describe(e, &types))?) {
            let array = NDArray::from_block(engine, home, tensor, block)?;
            place.put(if home == context { array } else { array.copy_to_context(context)? });
        }
        Ok(())
    });
    Ok(results.iter().map(|result| result.array.clone()).collect())
}
