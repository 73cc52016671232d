//! Shapes of labels that do not follow from other shapes: those that pass a `Reshape` on their way.

use super::{GraphError, NodeEntry, Symbol};
use mxrt_tensor::PartialShape;

/// Operators whose second input is a label, which has no influence outside training.
const LOSSES: &[&str] =
    &["SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput"];
/// Operators that pass the elements of their first input on.
const VIEWS: &[&str] = &[
    "Reshape",
    "Flatten",
    "transpose",
    "SwapAxis",
    "expand_dims",
    "squeeze",
    "Cast",
    "amp_cast",
    "BlockGrad",
    "_copy",
];

impl Symbol {
    /// Adds shapes of labels to those of other variables. A label that is reshaped on its way to a
    /// loss may have several shapes; it gets that of the loss, or its elements in one row.
    pub fn with_label_shapes(
        &self,
        mut known: Vec<(String, PartialShape)>,
    ) -> Result<Vec<(String, PartialShape)>, GraphError> {
        let all = self.infer_all_shapes(&known)?;
        for node in all.nodes.iter().filter(|node| is_one_of(node, LOSSES)) {
            let Some(slot) = node.inputs.get(1) else { continue };
            let label = source(slot);
            let open = label.node.is_variable() && !all.get(label).is_some_and(PartialShape::is_complete);
            let Some(wanted) = all.get(slot).and_then(PartialShape::complete).filter(|_| open) else { continue };
            let row = [Some(wanted.size())];
            for shape in [PartialShape::from(&wanted), PartialShape::from_dims(row)] {
                known.push((label.node.name.clone(), shape));
                if self.infer_all_shapes(&known).is_ok() {
                    break;
                }
                known.pop();
            }
        }
        Ok(known)
    }
}

fn is_one_of(node: &super::Node, names: &[&str]) -> bool {
    node.op.is_some_and(|op| names.contains(&op.name))
}

/// The value whose elements an entry has.
fn source(mut entry: &NodeEntry) -> &NodeEntry {
    while is_one_of(&entry.node, VIEWS) {
        let Some(before) = entry.node.inputs.first() else { break };
        entry = before;
    }
    entry
}
