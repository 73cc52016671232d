//! Tests of which variables are labels: by what they reach, not by their names.

use crate::common::{apply, var};
use mxrt_graph::Symbol;

fn labels(symbol: &Symbol) -> Vec<String> {
    let mut found: Vec<String> = symbol.labels().into_iter().collect();
    found.sort();
    found
}

fn dense() -> Symbol {
    apply("FullyConnected", "fc", &[("num_hidden", "3")], &[&var("data")])
}

fn loss(label: &Symbol) -> Symbol {
    apply("SoftmaxOutput", "softmax", &[], &[&dense(), label])
}

#[test]
fn what_reaches_the_label_of_a_loss_alone_is_a_label_whatever_its_name() {
    let target = var("target");
    assert_eq!(labels(&loss(&target)), ["target"]);
    let mut changed = target;
    let changes: [(&str, &[(&str, &str)]); 5] = [
        ("Reshape", &[("shape", "(-1,)")]),
        ("BlockGrad", &[]),
        ("Cast", &[("dtype", "float32")]),
        ("Flatten", &[]),
        ("SwapAxis", &[("dim1", "0"), ("dim2", "1")]),
    ];
    for (op, attrs) in changes {
        changed = apply(op, &format!("{op}0"), attrs, &[&changed]);
        assert_eq!(labels(&loss(&changed)), ["target"], "{op}");
    }
    for op in ["LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput"] {
        assert_eq!(labels(&apply(op, "out", &[], &[&dense(), &var("y")])), ["y"], "{op}");
    }
    // Both losses have the same one.
    let shared = var("y");
    assert_eq!(labels(&Symbol::group(&[loss(&shared), apply("SVMOutput", "svm", &[], &[&dense(), &shared])])), ["y"]);
}

#[test]
fn what_the_outputs_depend_on_is_no_label_whatever_its_name() {
    // The condition of a generator.
    let condition = apply("broadcast_add", "sum", &[], &[&var("data"), &var("class_label")]);
    assert_eq!(labels(&condition), [""; 0]);
    // An autoencoder: its input is its label, too.
    let data = var("label");
    let decoded = apply("FullyConnected", "fc", &[("num_hidden", "3")], &[&data]);
    assert_eq!(labels(&apply("LinearRegressionOutput", "out", &[], &[&decoded, &data])), [""; 0]);
    // An output itself, and next to a loss.
    let label = var("softmax_label");
    assert_eq!(labels(&Symbol::group(&[loss(&label), label.clone()])), [""; 0]);
    assert_eq!(labels(&var("label")), [""; 0]);
    // The second of two variables of one name counts as well.
    let other = apply("negative", "n", &[], &[&var("softmax_label")]);
    assert_eq!(labels(&Symbol::group(&[loss(&label), other])), [""; 0]);
}

#[test]
fn what_a_computed_loss_alone_depends_on_is_a_label_by_its_name() {
    let distance = |name: &str| apply("elemwise_sub", "apart", &[], &[&dense(), &var(name)]);
    let made = |name: &str| apply("MakeLoss", "loss", &[], &[&distance(name)]);
    let shown = apply("BlockGrad", "shown", &[], &[&dense()]);
    assert_eq!(labels(&Symbol::group(&[made("label"), shown.clone()])), ["label"]);
    assert_eq!(labels(&Symbol::group(&[made("target"), shown.clone()])), [""; 0]);
    assert_eq!(labels(&distance("label")), [""; 0], "without a loss it is an output");
    let ctc = |name: &str| apply("CTCLoss", "ctc", &[], &[&dense(), &var(name)]);
    assert_eq!(labels(&Symbol::group(&[ctc("label"), shown])), ["label"]);
    // One-hot on its way to a loss: the shape does not follow, so the name decides.
    let hot = |name: &str| apply("one_hot", "hot", &[("depth", "3")], &[&var(name)]);
    let out = |name: &str| apply("LogisticRegressionOutput", "out", &[], &[&dense(), &hot(name)]);
    assert_eq!(labels(&out("y_label")), ["y_label"]);
    assert_eq!(labels(&out("y")), [""; 0]);
}
