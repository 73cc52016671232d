//! Release of raw weights that a plan reads in packed form only.
//!
//! When a plan has computed its constants, an op for each large parameter compares it with the
//! values that its packing restores, and records the differences. A last op releases those that can
//! be restored ([`mxrt_tensor::ReleaseBatch`]). Requests continue meanwhile.

use super::restore::FoldInverse;
use crate::ir::Value;
use crate::plan::{ConstBlock, ConstPlan, ConstSet, ConstSource, GraphInputs, PackedParam, Plan};
use mxrt_engine::{Engine, OpError};
use mxrt_ops::Unpack;
use mxrt_tensor::{NDArray, ReleaseBatch, RestoreSource};
use std::sync::Arc;

/// Size below which parameters stay, since they share pages with others.
const LEAST_BYTES: usize = 128 << 10;
/// Rows that one call unpacks: those of the widest panel.
const ROWS: usize = 32;

impl Plan {
    /// The parameters whose packings can be undone and that no step reads unpacked.
    pub(crate) fn packed_params(&self, set: &ConstSet, inputs: &dyn GraphInputs) -> Vec<PackedParam> {
        let as_they_are = self.inputs_read();
        let of_slot = |(slot, block): (usize, &Option<Arc<ConstBlock>>)| {
            let ConstSource::Pack(packing) = &self.consts.slots[slot].source else { return None };
            let [value] = packing.inputs[..] else { return None };
            let input = weights_behind(&self.consts, value).filter(|input| !as_they_are.contains(input))?;
            let unpacker = self.steps[packing.step].kernel.packing()?.unpacker()?;
            Some(PackedParam { input, key: inputs.key(input), packed: block.clone()?, unpacker })
        };
        set.blocks.iter().enumerate().filter_map(of_slot).collect()
    }
}

/// The parameter that a packed value is, or that it is most likely a folded form of.
fn weights_behind(consts: &ConstPlan, value: Value) -> Option<usize> {
    match value {
        Value::Input(input) => Some(input),
        Value::Node(n, _) => match consts.nodes.get(&n)?.inputs.first()? {
            Value::Input(input) => Some(*input),
            Value::Node(..) => None,
        },
    }
}

/// Pushes ops that release these parameters of a call. `array_of` gives the array of an input of
/// the graph, if that is a parameter.
pub fn push_release<'a>(
    engine: &'static Engine,
    array_of: &dyn Fn(usize) -> Option<&'a NDArray>,
    params: Vec<PackedParam>,
) {
    let batch = ReleaseBatch::new(engine);
    for param in params {
        let Some(array) = array_of(param.input) else { continue };
        if array.nbytes() >= LEAST_BYTES {
            batch.examine(array, param.key, |weights| {
                let source = PackedSource::find(weights.shape.first().copied()?, weights.as_slice().ok()?, param)?;
                Some(Box::new(source))
            });
        }
    }
}

/// A packing from which a parameter is restored.
struct PackedSource {
    packed: Arc<ConstBlock>,
    unpacker: Box<dyn Unpack>,
    rows: usize,
    /// `None` if the packing holds the parameter unchanged
    inverse: Option<FoldInverse>,
}

impl PackedSource {
    /// Compares a parameter with its packing. `None` if the packing lacks too much of it.
    fn find(rows: usize, weights: &[f32], param: PackedParam) -> Option<PackedSource> {
        let each = weights.len() / rows.max(1);
        let mut inverse = FoldInverse::new(rows, each);
        let mut folded = vec![0.0; ROWS.min(rows) * each];
        for (first, raw) in (0..rows).step_by(ROWS).zip(weights.chunks(ROWS * each.max(1))) {
            let folded = &mut folded[..raw.len()];
            param.unpacker.unpack(param.packed.bytes(), first..(first + ROWS).min(rows), folded).ok()?;
            if !raw.chunks(each).zip(folded.chunks(each)).all(|(raw, folded)| inverse.add_row(raw, folded)) {
                return None;
            }
        }
        let inverse = (!inverse.is_identity()).then_some(inverse);
        Some(PackedSource { packed: param.packed, unpacker: param.unpacker, rows, inverse })
    }
}

impl RestoreSource for PackedSource {
    fn restore(&self, bytes: &mut [u8]) -> Result<(), OpError> {
        let weights: &mut [f32] = bytemuck::cast_slice_mut(bytes);
        let each = weights.len() / self.rows.max(1);
        for (first, weights) in (0..self.rows).step_by(ROWS).zip(weights.chunks_mut(ROWS * each.max(1))) {
            self.unpacker.unpack(self.packed.bytes(), first..(first + ROWS).min(self.rows), weights)?;
            if let Some(inverse) = &self.inverse {
                inverse.apply(first, weights);
            }
        }
        Ok(())
    }
}
