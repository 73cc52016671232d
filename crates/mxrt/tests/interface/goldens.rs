//! Answers of MXNet 1.9.1, and equal bits from many threads.

use super::{digits, folder, image, npz, prefix};
use mxrt::{Input, Model, NDArray};

/// Elements of any float type.
fn numbers(array: &NDArray) -> Vec<f32> {
    match array.dtype() {
        mxrt::DType::F16 => array.to_vec::<mxrt::types::f16>().expect("a result").iter().map(|v| v.to_f32()).collect(),
        _ => array.to_vec().expect("a result"),
    }
}

/// Runs the recorded batches of a model. Tolerances are those of the records, one an output.
fn check(name: &str, epoch: u32, tolerances: &[f32]) {
    let model = Model::load(prefix(name), epoch).expect("the model loads");
    let recorded = npz::load(model.engine(), &folder(name).join("golden.npz"));
    for batch in [1, 3, 16] {
        let inputs = model.inputs().iter().map(|info| (&info.name, &recorded[&format!("b{batch}.in.{}", info.name)]));
        let made = model.run(inputs).expect("the model answers");
        assert_eq!(made.len(), tolerances.len(), "{name}");
        for (i, (array, tolerance)) in made.iter().zip(tolerances).enumerate() {
            let wanted = &recorded[&format!("b{batch}.out.{i}")];
            assert_eq!(array.tensor_type(), wanted.tensor_type(), "{name}: output {i}");
            let pairs = numbers(array).into_iter().zip(numbers(wanted));
            let worst = pairs.map(|(got, want)| (got - want).abs() - 1e-3 * want.abs()).fold(0.0, f32::max);
            assert!(worst <= *tolerance, "{name}, batch of {batch}, output {i}: off by {worst}");
        }
    }
}

#[test]
fn trained_models_answer_as_mxnet_does() {
    check("digits_cnn", 0, &[1.5e-4]);
    check("half_cnn", 0, &[1e-3, 0.04]);
    check("wide_deep", 0, &[1e-5]);
    check("lstm_rows", 0, &[1.1e-4]);
    check("transformer", 0, &[8.1e-5]);
    // These have a label, which calls leave out.
    check("module_mlp", 5, &[1e-5]);
    check("legacy_mlp", 5, &[1e-5]);
}

#[test]
fn sixty_four_threads_get_the_bits_of_one() {
    let model = digits();
    let bits = |number: usize| {
        let made = model.run([("data", ([1, 1, 8, 8], &image(number)))]).expect("an answer");
        made[0].to_vec::<f32>().expect("elements").into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let alone: Vec<Vec<u32>> = (0..64).map(bits).collect();
    assert_ne!(alone[0], alone[1]);
    std::thread::scope(|scope| {
        for first in 0..64 {
            let (alone, bits) = (&alone, &bits);
            scope.spawn(move || {
                for number in (first..64).chain(0..first) {
                    assert_eq!(bits(number), alone[number], "image {number} in thread {first}");
                }
            });
        }
    });
}

#[test]
fn a_model_says_what_it_takes_and_returns() {
    let model = digits();
    let texts = |values: &[mxrt::ValueInfo]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(model.inputs()), ["data: float32 of any shape"]);
    assert_eq!(texts(model.outputs()), ["digitsnet_dense0_fwd_output: float32 of any shape"]);
    let outputs = model.outputs_for([("data", [3, 1, 8, 8])]).expect("the shapes fit");
    assert_eq!(texts(&outputs), ["digitsnet_dense0_fwd_output: float32(3, 10)"]);
    let labelled = Model::load(prefix("module_mlp"), 5).expect("the model loads");
    assert_eq!(labelled.inputs().len(), 1, "labels are no inputs");
    assert!(labelled.plan([("data", [2, 64])]).expect("a plan").steps.len() > 2);
    let plan = model.plan([("data", [3, 1, 8, 8])]).expect("a plan");
    assert!(plan.steps.iter().any(|step| step.op.ends_with("onvolution")), "{plan}");
    assert!(model.parameter("digitsnet_dense0_bias").is_some_and(|bias| bias.shape()[..] == [10]));
}

#[test]
fn inputs_are_arrays_or_slices_of_any_kind() {
    let model = digits();
    let pixels = image(7);
    let array = model.array([1, 1, 8, 8], &pixels).expect("an array");
    let fixed: [f32; 64] = pixels.clone().try_into().expect("64 pixels");
    let of = |input: Input<'_>| model.run([("data", input)]).expect("an answer")[0].to_vec::<f32>().expect("elements");
    let wanted = of(Input::from(&array));
    assert_eq!(of(Input::from(array.clone())), wanted);
    assert_eq!(of(Input::from(([1, 1, 8, 8], &pixels[..]))), wanted);
    assert_eq!(of(Input::from((vec![1, 1, 8, 8], &pixels))), wanted);
    assert_eq!(of(Input::from((&[1, 1, 8, 8][..], pixels.clone()))), wanted);
    assert_eq!(of(Input::from(([1, 1, 8, 8], &fixed))), wanted);
    let named = model.run([(String::from("data"), &array)]).expect("an answer");
    assert!(named.get_named("digitsnet_dense0_fwd_output").is_some() && named.get_named("other").is_none());
}

#[test]
fn calls_by_position_return_at_once_and_take_inputs_as_they_were_named() {
    const DIFFERENCE: &str = r#"{"nodes": [
        {"op": "null", "name": "a", "inputs": []}, {"op": "null", "name": "b", "inputs": []},
        {"op": "elemwise_sub", "name": "y", "inputs": [[0, 0, 0], [1, 0, 0]]}],
        "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}"#;
    let options = mxrt::CallOptions::default();
    let load = |builder: mxrt::ModelBuilder| {
        let symbol = mxrt::Symbol::load_json(DIFFERENCE).expect("a symbol").symbol;
        builder.from_symbol(symbol, Default::default()).expect("a model")
    };
    for (builder, wanted) in [(Model::builder(), [-4.0f32]), (Model::builder().inputs(["b", "a"]), [4.0])] {
        let model = load(builder);
        let (first, second) = (model.array([1], &[1.0f32]).unwrap(), model.array([1], &[5.0f32]).unwrap());
        let made = model.call(&[&first, &second], None, &options).expect("a call");
        assert_eq!(made[0].to_vec::<f32>().expect("elements"), wanted);
        let place = model.array([1], &[0.0f32]).unwrap();
        model.call(&[&first, &second], Some(&[&place]), &options).expect("a call");
        assert_eq!(place.to_vec::<f32>().expect("elements"), wanted);
        let error = model.call(&[&first], None, &options).unwrap_err();
        assert!(error.to_string().contains("takes 2 inputs ("), "{error}");
    }
    // Labels that were not named are left out; one that was named is an input.
    let labelled = Model::load(prefix("module_mlp"), 5).expect("the model loads");
    let data = labelled.array([2, 64], &[0.5f32; 128]).expect("an array");
    let made = labelled.call(&[&data], None, &options).expect("a call");
    assert_eq!(made[0].to_vec::<f32>().unwrap(), labelled.run([("data", &data)]).unwrap()[0].to_vec::<f32>().unwrap());
    let named = Model::builder().inputs(["data", "softmax_label"]).load(prefix("module_mlp"), 5).expect("a model");
    assert_eq!(named.inputs().len(), 2);
    let wrong = Model::builder().inputs(["data", "data"]).load(prefix("digits_cnn"), 0).unwrap_err();
    assert!(wrong.to_string().contains("'data' is named twice"), "{wrong}");
    let wrong = Model::builder().flag("speed", "high").load(prefix("digits_cnn"), 0).unwrap_err();
    assert!(wrong.to_string().contains("speed"), "{wrong}");
}

#[test]
fn a_model_of_bytes_is_the_one_of_the_files() {
    let read = |ending: &str| std::fs::read(format!("{}-{ending}", prefix("digits_cnn"))).expect("the file");
    let model = Model::load_bytes(read("symbol.json"), read("0000.params")).expect("the model loads");
    let ask = |model: &Model| model.run([("data", ([1, 1, 8, 8], &image(1)))]).expect("an answer")[0].to_vec::<f32>();
    assert_eq!(ask(&model).expect("elements"), ask(&digits()).expect("elements"));
}

#[test]
fn equal_choices_share_an_engine_and_others_do_not() {
    use mxrt::engine::EngineKind;
    let naive = || super::digits_by(Model::builder().engine_kind(EngineKind::Naive).threads(2));
    let (one, two, other) = (naive(), naive(), digits());
    assert!(std::ptr::eq(one.engine(), two.engine()) && !std::ptr::eq(one.engine(), other.engine()));
    assert_eq!((one.engine().kind(), one.engine().cores()), (EngineKind::Naive, 2));
    let given = super::digits_by(Model::builder().engine(one.engine()));
    assert!(std::ptr::eq(given.engine(), one.engine()));
    let ask = |model: &Model| model.run([("data", ([1, 1, 8, 8], &image(1)))]).expect("an answer")[0].to_vec::<f32>();
    assert_eq!(ask(&one).expect("elements"), ask(&other).expect("elements"));
}
