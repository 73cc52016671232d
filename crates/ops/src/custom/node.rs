//! `Custom`: an operator of the program.

use super::{Callback, CustomNode, custom_kernel};
use crate::prelude::*;

/// The attribute that holds the operator.
const OPERATOR: &str = "**kwargs";

const ATTRS: &[AttrDef] = &[
    AttrDef::required("op_type", AttrKind::Str, "Name that the operator was registered under."),
    AttrDef::new(
        OPERATOR,
        AttrKind::Object(ObjectParser(CustomNode::parse)),
        "",
        "Arguments of the registered class; it gets them as text.",
    ),
];

/// The operator that the attributes of a `Custom` node hold; none if it runs as a kernel.
pub fn callback(attrs: &Attrs) -> Option<Callback> {
    Callback::of(attrs.object::<CustomNode>(OPERATOR))
}

const INPUTS: Inputs = Inputs::Computed {
    names: |attrs| &attrs.object::<CustomNode>(OPERATOR).inputs,
    states: |attrs| attrs.object::<CustomNode>(OPERATOR).states(),
};

/// Rows of the table. Equal inputs need not give equal outputs, as of a random operator.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "Custom",
        aliases: &["_npi_Custom"],
        doc: "Runs an operator of the program: see mx.operator.CustomOp.",
        attrs: ATTRS,
        inputs: INPUTS,
        outputs: Outputs::Computed(|attrs| &attrs.object::<CustomNode>(OPERATOR).outputs),
        infer_shape: |shapes| shapes.attrs.object::<CustomNode>(OPERATOR).infer_shape(shapes),
        infer_dtype: |dtypes| dtypes.attrs.object::<CustomNode>(OPERATOR).infer_dtype(dtypes),
        bind: |attrs, signature| custom_kernel(attrs.object(OPERATOR), signature),
        random: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_custom_with_states",
        doc: "Custom; its auxiliary states as they are afterwards are outputs after the others.",
        attrs: ATTRS,
        inputs: INPUTS,
        outputs: Outputs::Count(|attrs| {
            let node = attrs.object::<CustomNode>(OPERATOR);
            node.outputs.len() + node.states()
        }),
        infer_shape: |shapes| shapes.attrs.object::<CustomNode>(OPERATOR).infer_shape(shapes),
        infer_dtype: |dtypes| dtypes.attrs.object::<CustomNode>(OPERATOR).infer_dtype(dtypes),
        bind: |attrs, signature| custom_kernel(attrs.object(OPERATOR), signature),
        random: true,
        internal: true,
        ..OpDef::BASE
    },
];
