//! Errors have their parts as fields.

use super::{digits, digits_by, image, prefix};
use mxrt::{Error, ErrorKind, Input, Model};

fn is_a_value<T: Send + Sync + Clone + std::error::Error + 'static>(_: &T) {}

/// Input, got and wanted.
fn fields(error: &Error) -> [Option<&str>; 3] {
    [error.input(), error.got(), error.wanted()]
}

#[test]
fn wrong_names_are_named() {
    let model = digits();
    let pixels = image(0);
    let error = model.run([("image", ([1, 1, 8, 8], &pixels))]).unwrap_err();
    is_a_value(&error);
    assert_eq!((error.kind(), fields(&error)), (ErrorKind::Value, [Some("image"), None, None]));
    assert_eq!(error.to_string(), "the model has no input 'image'; its inputs are data [MX-VALUE]");
    let error = model.run([("digitsnet_dense0_bias", ([10], &[0f32; 10]))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "'digitsnet_dense0_bias' is a parameter of the model; its inputs are data [MX-VALUE]"
    );
    let none: [(&str, Input<'_>); 0] = [];
    let error = model.run(none).unwrap_err();
    assert_eq!(fields(&error), [Some("data"), None, Some("float32 of any shape")]);
    assert!(error.to_string().starts_with("the input 'data' is missing"), "{error}");
    let error = model.run([("data", ([1, 1, 8, 8], &pixels)), ("data", ([1, 1, 8, 8], &pixels))]).unwrap_err();
    assert_eq!(error.to_string(), "the input 'data' is given twice [MX-VALUE]");
    let error = model.plan([("image", [1, 1, 8, 8])]).unwrap_err();
    assert_eq!(error.input(), Some("image"));
}

#[test]
fn wrong_shapes_and_types_say_what_fits() {
    let model = digits();
    let error = model.run([("data", ([1, 8, 8], &image(0)))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert_eq!(fields(&error), [Some("data"), Some("(1, 8, 8)"), Some("(1, 1, 8, 8)")], "{error}");
    assert!(error.operator().is_some() && error.node().is_some(), "{error}");
    let error = model.run([("data", ([1, 1, 8, 8], &[1i32; 64]))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Type);
    assert_eq!(fields(&error), [Some("data"), Some("int32"), Some("float32")], "{error}");
    let error = model.run([("data", ([1, 1, 8, 8], &[1f32; 63]))]).unwrap_err();
    assert_eq!(fields(&error), [Some("data"), Some("63 elements"), Some("64 elements")]);
    assert_eq!(
        error.to_string(),
        "input 'data': got 63 elements for the shape (1, 1, 8, 8), which has 64: pass as many [MX-SHAPE]"
    );
    let error = model.run([("data", ([usize::MAX, 2], &[1f32; 2]))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    let made = model.run([("data", ([1, 1, 8, 8], &image(0)))]).expect("an answer");
    assert_eq!(Error::from(made[0].to_vec::<i32>().unwrap_err()).kind(), ErrorKind::Type);
}

#[test]
fn arrays_of_another_engine_are_refused() {
    let (one, other) = (digits(), digits_by(Model::builder().threads(1)));
    let array = other.array([1, 1, 8, 8], &image(0)).expect("an array");
    let error = one.run([("data", &array)]).unwrap_err();
    assert_eq!((error.kind(), error.input()), (ErrorKind::Value, Some("data")));
    assert!(error.to_string().contains("another engine"), "{error}");
}

#[test]
fn an_operator_that_fails_is_named() {
    let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "i", "inputs": []},
        {"op": "take", "name": "picked", "attrs": {"mode": "raise"}, "inputs": [[0, 0, 0], [1, 0, 0]]}],
        "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}"#;
    let symbol = mxrt::Symbol::load_json(json).expect("a symbol").symbol;
    let none = mxrt::params::Params::default();
    let model = Model::builder().from_symbol(symbol, none).expect("the model loads");
    let ask = |index: f32| model.run([("x", ([3], &[1f32, 2.0, 3.0])), ("i", ([3], &[0f32, index, 1.0]))]);
    assert_eq!(ask(2.0).expect("an answer")[0].to_vec::<f32>().expect("elements"), [1.0, 3.0, 2.0]);
    let error = ask(7.0).unwrap_err();
    assert_eq!((error.operator(), error.node()), (Some("take"), Some("picked")), "{error}");
    assert!(error.to_string().starts_with("take 'picked': "), "{error}");
    assert!(error.same_event(&error.clone()) && !error.same_event(&ask(7.0).unwrap_err()));
    model.engine().wait_all().expect("returned failures count as seen");
}

#[test]
fn files_that_are_missing_or_damaged_are_errors_that_name_them() {
    let error = Model::load("/no/such/model", 7).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::FileNotFound, "MX-FILE"));
    assert!(error.to_string().contains("/no/such/model-symbol.json"), "{error}");
    assert!(error.to_string().ends_with(" [MX-FILE]") && !error.message().contains("MX-"), "{error}");
    let error = Model::load(prefix("digits_cnn"), 12).unwrap_err();
    assert!(error.to_string().contains("digits_cnn-0012.params"), "{error}");
    let read = |ending: &str| std::fs::read(format!("{}-{ending}", prefix("digits_cnn"))).expect("the file");
    let (symbol, params) = (read("symbol.json"), read("0000.params"));
    let cuts = |length: usize| (0..length).step_by(length / 23).chain([1, 7, 8, 24, length - 1]);
    for cut in cuts(params.len()) {
        let error = Model::load_bytes(&symbol, &params[..cut]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{cut} bytes of parameters: {error}");
    }
    for cut in cuts(symbol.len()) {
        let error = Model::load_bytes(&symbol[..cut], &params).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{cut} bytes of the symbol: {error}");
    }
    assert_eq!(Model::load_bytes([0xff, 0xfe], &params).unwrap_err().kind(), ErrorKind::Data);
}

#[test]
fn choices_that_make_no_sense_are_errors_of_values() {
    let value = |builder: mxrt::ModelBuilder| {
        let error = builder.load(prefix("digits_cnn"), 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        error.to_string()
    };
    assert!(value(Model::builder().threads(0)).contains("0 cores"));
    assert!(value(Model::builder().inputs(["image"])).contains("no input 'image'"));
    let nothing: [&str; 0] = [];
    assert!(value(Model::builder().inputs(nothing)).contains("there is no parameter for the input 'data'"));
    assert!(value(Model::builder().max_nodes(3)).contains("the limit is 3"));
    let error = Model::builder().tuned("/no/such/table").load(prefix("digits_cnn"), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let error = Model::builder().memory_limit(1000).load(prefix("digits_cnn"), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory, "{error}");
}
