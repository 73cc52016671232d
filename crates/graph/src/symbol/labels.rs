//! Labels: variables that matter only in training. Shapes of labels that do not follow from other
//! shapes: those that pass a `Reshape` on their way.

use super::{GraphError, Node, NodeEntry, Symbol};
use mxrt_tensor::PartialShape;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Operators whose second input is a label, which has no influence outside training.
const LOSSES: &[&str] =
    &["SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput"];
/// Operators whose second input is a label, which has an influence on their values.
const COMPUTED_LOSSES: &[&str] = &["CTCLoss", "softmax_cross_entropy", "_contrib_MultiBoxTarget"];
/// Operators whose value is a loss.
const LOSS_HEADS: &[&str] = &["MakeLoss", "make_loss"];
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

/// The influence of a value, from the least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Influence {
    /// Nothing: it reaches labels of losses alone, and has the elements of the label there.
    Label,
    /// A loss alone, or nothing.
    Loss,
    /// The outputs.
    Outputs,
}

impl Symbol {
    /// The arguments that are labels: they reach the label of a loss and nothing else, at most
    /// through a change of shape or type. Of other variables those whose names end in `label`, if
    /// they have no influence on the outputs but on those that are losses.
    pub fn labels(&self) -> HashSet<String> {
        let nodes = self.topo();
        let mut found: HashMap<*const Node, Influence> = HashMap::new();
        for head in self.outputs() {
            let is_loss = is_one_of(&head.node, LOSS_HEADS) || is_one_of(&head.node, COMPUTED_LOSSES);
            raise(&mut found, head, if is_loss { Influence::Loss } else { Influence::Outputs });
        }
        for node in nodes.iter().rev().filter(|node| !node.is_variable()) {
            let own = found.get(&Arc::as_ptr(node)).copied().unwrap_or(Influence::Loss);
            for (slot, input) in node.inputs.iter().enumerate() {
                let label = |names: &[&str]| slot == 1 && is_one_of(node, names);
                let influence = match own {
                    _ if label(LOSSES) => Influence::Label,
                    _ if label(COMPUTED_LOSSES) || is_one_of(node, LOSS_HEADS) => Influence::Loss,
                    Influence::Label if !is_one_of(node, VIEWS) => Influence::Loss,
                    own => own,
                };
                raise(&mut found, input, influence);
            }
        }
        // A variable may have the name of another one, which takes the same array.
        let mut by_name: HashMap<&str, Influence> = HashMap::new();
        for node in nodes.iter().filter(|node| node.is_variable()) {
            let of_node = found.get(&Arc::as_ptr(node)).copied().unwrap_or(Influence::Outputs);
            let of_name = by_name.entry(&node.name).or_insert(of_node);
            *of_name = of_node.max(*of_name);
        }
        let is_label = |(name, influence): &(&str, Influence)| match influence {
            Influence::Label => true,
            Influence::Loss => name.ends_with("label"),
            Influence::Outputs => false,
        };
        by_name.into_iter().filter(is_label).map(|(name, _)| name.to_owned()).collect()
    }

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

fn raise(found: &mut HashMap<*const Node, Influence>, entry: &NodeEntry, to: Influence) {
    let influence = found.entry(Arc::as_ptr(&entry.node)).or_insert(to);
    *influence = to.max(*influence);
}

fn is_one_of(node: &Node, names: &[&str]) -> bool {
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
