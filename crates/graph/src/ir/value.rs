//! Values of a graph, and maps by value.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A value of a graph, named by its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// an input of the graph
    Input(usize),
    /// an output of a node: (node, output)
    Node(usize, usize),
}

impl Value {
    /// The node that makes the value, if it is not an input.
    pub fn node(self) -> Option<usize> {
        match self {
            Value::Input(_) => None,
            Value::Node(n, _) => Some(n),
        }
    }
}

/// A map by value. Passes look up every value of a graph several times.
pub type ValueMap<V> = HashMap<Value, V, BuildHasherDefault<ValueHasher>>;

/// A hash of the small numbers that make up a [`Value`]. It takes a nanosecond. It does not resist
/// chosen keys, but the numbers of nodes count up and are not chosen.
#[derive(Default)]
pub struct ValueHasher(u64);

impl Hasher for ValueHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // The map takes low bits, and the multiplication mixes into high ones.
        self.0.rotate_left(26)
    }
}
