//! Concatenation without copies: producers write directly into their part of the joined value.
//!
//! An input that a step makes is placed inside the output where the output has the same bytes.
//! Inputs that cannot be placed (arguments, constants, results, a value joined twice, channels that
//! begin in the middle of a block) are copied by separate steps. A joined value may itself be
//! inside a larger one.

use crate::ir::{Graph, Value};
use std::collections::{HashMap, HashSet};

/// A concatenation: a node that copies its inputs into one output.
pub struct Join {
    /// position of the node in the graph
    pub node: usize,
    /// inputs of the join
    pub parts: Vec<JoinInput>,
}

/// An input of a join.
#[derive(Clone, Copy)]
pub struct JoinInput {
    /// the input (root of aliases)
    pub value: Value,
    /// offset of the input in the output
    pub offset: usize,
    /// whether no other input shares bytes of the output with it, except the end of its last block
    pub alone: bool,
}

/// Values that steps read together with the output of a join.
struct StepReads<'a>(HashMap<Value, Vec<&'a [Value]>>);

impl<'a> StepReads<'a> {
    fn of(joins: &[Join], reads: &'a [Vec<Value>]) -> StepReads<'a> {
        let mut steps: HashMap<Value, Vec<&[Value]>> =
            joins.iter().map(|join| (Value::Node(join.node, 0), Vec::new())).collect();
        for step in reads {
            // One that reads it twice is listed twice, which does no harm.
            for value in step {
                if let Some(of_join) = steps.get_mut(value) {
                    of_join.push(step);
                }
            }
        }
        StepReads(steps)
    }

    fn of_join(&self, out: Value) -> &[&'a [Value]] {
        self.0.get(&out).map_or(&[], Vec::as_slice)
    }
}

/// Places of values inside other values.
#[derive(Default)]
pub struct Joined {
    /// the value around a value, and the offset in it
    inside: HashMap<Value, (Value, usize)>,
    /// inputs that have to be copied, by joining node: position of the input, and the value that
    /// stands for its place
    copies: HashMap<usize, Vec<(usize, Value)>>,
}

impl Joined {
    /// Finds a place inside a concatenation's output for every value that can have one.
    ///
    /// `joins` are in execution order. `reads` are the values that each other step reads. Values in
    /// `fixed` have a place of their own. `made` tells whether a step makes a value.
    pub fn new(joins: &[Join], reads: &[Vec<Value>], fixed: &HashSet<Value>, made: &dyn Fn(Value) -> bool) -> Joined {
        let mut joined = Joined::default();
        let reads = StepReads::of(joins, reads);
        for join in joins {
            let out = Value::Node(join.node, 0);
            if !fixed.contains(&out) {
                joined.place(join, &reads, &|v| made(v) && !fixed.contains(&v));
            }
        }
        joined
    }

    fn place(&mut self, join: &Join, reads: &StepReads<'_>, free: &dyn Fn(Value) -> bool) {
        let out = Value::Node(join.node, 0);
        let mut copies = Vec::new();
        for (k, JoinInput { value, offset, alone }) in join.parts.iter().copied().enumerate() {
            let fits = alone && free(value) && !self.inside.contains_key(&value);
            if fits && !self.read_together(reads, value, out) && !self.is_merged(join, value) {
                self.inside.insert(value, (out, offset));
            } else {
                copies.push((k, offset));
            }
        }
        // The operator does it alone, unless it would read the same bytes twice.
        if copies.len() == join.parts.len() && !self.any_overlap(&join.parts) {
            return;
        }
        // A joining node has one output; the numbers after it are free to name the places of its
        // inputs.
        let places = copies.into_iter().map(|(k, offset)| {
            let place = Value::Node(join.node, 1 + k);
            self.inside.insert(place, (out, offset));
            (k, place)
        });
        let places = places.collect();
        self.copies.insert(join.node, places);
    }

    /// Whether a step reads `out` and something inside `value`: a step cannot be given the same
    /// bytes twice.
    fn read_together(&self, reads: &StepReads<'_>, value: Value, out: Value) -> bool {
        let part = |v: &Value| *v == value || self.lies_inside(*v, value);
        reads.of_join(out).iter().any(|step| step.iter().any(part))
    }

    /// Whether one of the inputs is inside another.
    fn any_overlap(&self, parts: &[JoinInput]) -> bool {
        parts.iter().any(|inner| parts.iter().any(|outer| self.lies_inside(inner.value, outer.value)))
    }

    /// Whether `value`, or something inside it, is also written after other channels. Such a write
    /// may touch the block in which the value ends, and a step cannot write where it reads.
    fn is_merged(&self, join: &Join, value: Value) -> bool {
        let merged = join.parts.iter().filter(|part| !part.alone).map(|part| part.value);
        merged.into_iter().any(|v| v == value || self.lies_inside(v, value))
    }

    fn lies_inside(&self, mut value: Value, outer: Value) -> bool {
        while let Some((around, _)) = self.inside.get(&value) {
            value = *around;
            if value == outer {
                return true;
            }
        }
        false
    }

    /// The outermost value that contains a value, and the offset in it. A value inside no other is
    /// returned with offset 0.
    pub fn place_of(&self, value: Value) -> (Value, usize) {
        let (mut at, mut offset) = (value, 0);
        while let Some((around, o)) = self.inside.get(&at) {
            (at, offset) = (*around, offset + o);
        }
        (at, offset)
    }

    /// The copies that a concatenation still needs. `None` if it runs as a step of its own.
    pub fn copies(&self, node: usize) -> Option<&[(usize, Value)]> {
        self.copies.get(&node).map(Vec::as_slice)
    }
}

/// The values that each step reads, by node. A concatenation among `joins` is no step, unless its
/// output is in `fixed`, so that its inputs cannot be made inside it.
pub fn reads(graph: &Graph, joins: &[Join], fixed: &HashSet<Value>, root: &dyn Fn(Value) -> Value) -> Vec<Vec<Value>> {
    let joining: HashSet<usize> =
        joins.iter().map(|j| j.node).filter(|n| !fixed.contains(&Value::Node(*n, 0))).collect();
    let others = graph.nodes.iter().enumerate().filter(|(n, _)| !joining.contains(n));
    others.map(|(_, node)| node.inputs.iter().map(|v| root(*v)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn node(n: usize) -> Value {
        Value::Node(n, 0)
    }

    fn join(n: usize, inputs: &[Value]) -> Join {
        let part = |(k, value): (usize, &Value)| JoinInput { value: *value, offset: 64 * k, alone: true };
        Join { node: n, parts: inputs.iter().enumerate().map(part).collect() }
    }

    fn made(value: Value) -> bool {
        matches!(value, Value::Node(..))
    }

    #[test]
    fn values_joined_twice_over_lie_in_the_outermost() {
        let mut around = join(4, &[node(2), node(3)]);
        around.parts[1].offset = 128;
        let joins = [join(2, &[node(0), node(1)]), around];
        let joined = Joined::new(&joins, &[vec![node(2)]], &HashSet::new(), &made);
        assert_eq!(joined.place_of(node(1)), (node(4), 64));
        assert_eq!(joined.place_of(node(3)), (node(4), 128));
        assert_eq!(joined.copies(2), Some(&[][..]));
        assert_eq!(joined.place_of(node(7)), (node(7), 0));
    }

    #[test]
    fn arguments_results_and_repeated_values_are_copied() {
        let fixed = HashSet::from([node(1)]);
        let joins = [join(3, &[Value::Input(0), node(0), node(0), node(1)])];
        let joined = Joined::new(&joins, &[], &fixed, &made);
        let copied: Vec<usize> = joined.copies(3).unwrap_or(&[]).iter().map(|(k, _)| *k).collect();
        assert_eq!(copied, [0, 2, 3]);
        assert_eq!(joined.place_of(Value::Node(3, 3)), (node(3), 128));
        let none = Joined::new(&[join(3, &[Value::Input(0), node(1)])], &[], &fixed, &made);
        assert_eq!(none.copies(3), None, "with nothing to place the operator does it");
        let result = Joined::new(&[join(1, &[node(0)])], &[], &fixed, &made);
        assert_eq!(result.copies(1), None, "a result has a place of its own");
    }

    #[test]
    fn channels_that_begin_within_a_block_are_copied_from_where_they_are_made() {
        let mut twice = join(3, &[node(0), node(1), node(1)]);
        twice.parts[2].alone = false;
        let joined = Joined::new(&[twice], &[], &HashSet::new(), &made);
        assert_eq!(joined.place_of(node(0)), (node(3), 0));
        assert_eq!(joined.place_of(node(1)), (node(1), 0), "read while its place is written");
        let copied: Vec<usize> = joined.copies(3).unwrap_or(&[]).iter().map(|(k, _)| *k).collect();
        assert_eq!(copied, [1, 2]);
    }

    #[test]
    fn a_step_that_reads_the_whole_and_a_part_keeps_them_apart() {
        let joins = [join(2, &[node(0), node(1)])];
        let joined = Joined::new(&joins, &[vec![node(2), node(0)]], &HashSet::new(), &made);
        assert_eq!(joined.place_of(node(0)), (node(0), 0));
        assert_eq!(joined.place_of(node(1)), (node(2), 64));
    }
}
