//! Tests of the crate's features.

use super::{digits, image};
use ndarray::{Array4, ArrayD, s};

#[test]
fn arrays_of_the_crate_ndarray_are_inputs_and_results() {
    let model = digits();
    let pixels = image(3);
    let wanted = model.run([("data", ([1, 1, 8, 8], &pixels))]).expect("an answer")[0].to_vec::<f32>();
    let wanted = wanted.expect("elements");
    let array = Array4::from_shape_vec([1, 1, 8, 8], pixels).expect("the shape fits");
    let ask = |made: mxrt::Outputs| {
        let scores: ArrayD<f32> = mxrt::types::to_ndarray(&made[0]).expect("elements");
        assert_eq!(scores.shape(), [1, 10]);
        scores.into_raw_vec_and_offset().0
    };
    assert_eq!(ask(model.run([("data", &array)]).expect("an answer")), wanted);
    assert_eq!(ask(model.run([("data", array.view())]).expect("an answer")), wanted);
    // A view whose elements do not lie row by row.
    let mirrored = array.slice(s![.., .., .., ..;-1]).to_owned();
    let back = mirrored.slice(s![.., .., .., ..;-1]);
    assert_eq!(ask(model.run([("data", back)]).expect("an answer")), wanted);
    let wrong = mxrt::types::to_ndarray::<i64>(model.parameter("digitsnet_dense0_bias").expect("a parameter"));
    assert_eq!(wrong.unwrap_err().kind(), mxrt::ErrorKind::Type);
}

#[test]
fn reports_of_plans_are_data() {
    let plan = digits().plan([("data", [2, 1, 8, 8])]).expect("a plan");
    let json = serde_json::to_value(&plan).expect("it is written");
    assert_eq!(json["arena_bytes"], plan.arena_bytes);
    assert_eq!(json["steps"].as_array().map(Vec::len), Some(plan.steps.len()));
}

/// A model of one operator over the inputs `data` and `second`.
fn of_operator(op: &str, second: &str) -> mxrt::Model {
    let json = format!(
        r#"{{"nodes": [{{"op": "null", "name": "data", "inputs": []}}, {{"op": "null", "name": "{second}", "inputs": []}},
            {{"op": "{op}", "name": "out", "inputs": [[0, 0, 0], [1, 0, 0]]}}],
            "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}}"#
    );
    let symbol = mxrt::Symbol::load_json(&json).expect("a symbol").symbol;
    mxrt::Model::builder().from_symbol(symbol, Default::default()).expect("a model")
}

#[test]
fn the_graph_says_what_is_a_label_and_not_the_name() {
    let names = |model: &mxrt::Model| model.inputs().iter().map(|input| input.name.clone()).collect::<Vec<_>>();
    let two = ([1usize, 2], &[1.0f32, 3.0][..]);
    let loss = of_operator("LinearRegressionOutput", "truth");
    assert_eq!(names(&loss), ["data"]);
    let made = loss.run([("data", two)]).expect("an answer");
    assert_eq!(made[0].to_vec::<f32>().expect("elements"), [1.0, 3.0]);
    let sum = of_operator("elemwise_add", "class_label");
    assert_eq!(names(&sum), ["data", "class_label"]);
    assert!(sum.run([("data", two)]).is_err(), "zeros would be a wrong answer");
    let made = sum.run([("data", two), ("class_label", two)]).expect("an answer");
    assert_eq!(made[0].to_vec::<f32>().expect("elements"), [2.0, 6.0]);
}
