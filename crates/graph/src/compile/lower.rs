//! One lowering of graphs to steps, for every target.
//!
//! A [`Target`] says which passes have results that it can run, makes the steps of nodes and the
//! copies of results, and gives values their places. What is alike is here: passes with types
//! between them, aliases, the order of steps, and which results are made in place.

use super::interrupt::Interrupter;
use super::options::BuildOptions;
use super::values::{GraphValues, Results};
use crate::ir::{Graph, Value, infer_checked};
use crate::passes::{On, TYPED_PASSES};
use mxrt_engine::OpError;
use mxrt_tensor::TensorType;

/// A target of the lowering.
pub(crate) trait Target: Sized {
    /// A lowered graph.
    type Lowered;
    /// The column of the table of passes.
    const ON: On;

    /// Looks at the values before the first node.
    fn begin(&mut self, _: &GraphValues<'_>) -> Result<(), OpError> {
        Ok(())
    }

    /// Adds the steps of a node that is no alias.
    fn node(&mut self, values: &GraphValues<'_>, n: usize, interrupter: &mut Interrupter<'_>) -> Result<(), OpError>;

    /// The value whose bytes a result has.
    fn result(&mut self, values: &GraphValues<'_>, value: Value) -> Result<Value, OpError> {
        Ok(values.root(value))
    }

    /// Whether a value depends on parameters alone.
    fn is_constant(&self, values: &GraphValues<'_>, value: Value) -> bool {
        values.is_constant(value)
    }

    /// Adds a step that copies a value to a result.
    fn copy(&mut self, values: &GraphValues<'_>, output: usize, value: Value) -> Result<(), OpError>;

    /// Gives every value its place.
    fn finish(
        self,
        values: &GraphValues<'_>,
        results: &Results,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Self::Lowered, OpError>;
}

/// Lowers a graph for these types of its inputs.
pub(crate) fn lower<T: Target>(
    mut target: T,
    graph: &Graph,
    inputs: &[TensorType],
    options: &BuildOptions,
    interrupter: &mut Interrupter<'_>,
) -> Result<T::Lowered, OpError> {
    let mut graph = graph.clone();
    let mut types = infer_checked(&graph, inputs, &mut || interrupter.check())?;
    for pass in TYPED_PASSES.iter().filter(|pass| pass.on.contains(&T::ON) && options.passes.runs(pass.name)) {
        let old = graph.clone();
        graph = (pass.run)(graph, &types, options.kernel)?;
        if !graph.is_same(&old) {
            types = infer_checked(&graph, inputs, &mut || interrupter.check())?;
        }
    }
    let values = GraphValues::new(&graph, &types, T::ON == On::Device);
    target.begin(&values)?;
    for n in (0..graph.nodes.len()).filter(|n| !values.is_alias(*n)) {
        if n.is_multiple_of(64) {
            interrupter.check()?;
        }
        target.node(&values, n, interrupter)?;
    }
    let roots = graph.outputs.iter().map(|value| target.result(&values, *value)).collect::<Result<Vec<_>, _>>()?;
    let made = |value: Value| value.node().is_some() && !target.is_constant(&values, value);
    let results = Results::new(&roots, made);
    for (output, value) in &results.copies {
        target.copy(&values, *output, *value)?;
    }
    target.finish(&values, &results, interrupter)
}
