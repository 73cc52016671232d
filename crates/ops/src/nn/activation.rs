//! `Activation`: relu, sigmoid, tanh, softrelu, softsign.

use crate::blocked;
use crate::math::bind_unary;
use crate::prelude::*;
use mxrt_kernels::elementwise::Unary;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Activation",
    aliases: &["_npx_activation"],
    doc: "Applies an activation function to every element.",
    attrs: &[AttrDef::required(
        "act_type",
        AttrKind::Enum(&["relu", "sigmoid", "softrelu", "softsign", "tanh"]),
        "Which function; softrelu is log(1 + exp(x)), softsign is x / (1 + |x|).",
    )],
    bind: |attrs, signature| bind_unary(function(attrs), signature),
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| {
            (attrs.str("act_type") == "relu")
                .then(|| blocked::pointwise::form("_blocked_activation", signature, 1))
                .flatten()
        },
        elementwise: |attrs| Some(Elementwise::Unary(function(attrs))),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn function(attrs: &Attrs) -> Unary {
    match attrs.str("act_type") {
        "relu" => Unary::Relu,
        "sigmoid" => Unary::Sigmoid,
        "softrelu" => Unary::Softrelu,
        "softsign" => Unary::Softsign,
        _ => Unary::Tanh,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn of(act_type: &str, x: f32) -> f32 {
        f32s(&OpTest::new("Activation").attr("act_type", act_type).f32([1], &[x]).run(), [1])[0]
    }

    #[test]
    fn each_function_is_the_one_its_name_says() {
        assert_eq!([of("relu", -2.0), of("relu", 3.0)], [0.0, 3.0]);
        let got = [of("sigmoid", 1.0), of("tanh", 1.0), of("softrelu", 1.0), of("softsign", 3.0)];
        assert_close(&got, &[0.731_058_6, 0.761_594_2, 1.313_261_7, 0.75]);
    }

    #[test]
    fn an_unknown_function_is_refused_with_the_known_ones() {
        let error = OpTest::new("Activation").attr("act_type", "swishy").f32([1], &[0.0]).error();
        assert!(error.message.contains("'swishy'") && error.message.contains("'softrelu'"), "{}", error.message);
    }
}
