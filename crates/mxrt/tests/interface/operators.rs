//! Operators of the program, registered at run time.

use mxrt::operators::{Operator, register_operator};
use mxrt::types::{TensorMut, TensorRef};
use mxrt::{DType, Error, ErrorKind, Model, Shape, Symbol};

/// A model of one `Custom` node between two operators: `relu(custom(-x)) * 10`.
fn model(op_type: &str, attrs: &str) -> Result<Model, Error> {
    let json = format!(
        r#"{{"nodes": [{{"op": "null", "name": "x", "inputs": []}},
        {{"op": "negative", "name": "n", "inputs": [[0, 0, 0]]}},
        {{"op": "Custom", "name": "c", "attrs": {{"op_type": "{op_type}"{attrs}}}, "inputs": [[1, 0, 0]]}},
        {{"op": "relu", "name": "r", "inputs": [[2, 0, 0]]}},
        {{"op": "_mul_scalar", "name": "z", "attrs": {{"scalar": "10"}}, "inputs": [[3, 0, 0]]}}],
        "arg_nodes": [0], "heads": [[4, 0, 0]]}}"#
    );
    Model::builder().from_symbol(Symbol::load_json(&json)?.symbol, Default::default())
}

/// Sums of the rows, as float64.
struct RowSums;

impl Operator for RowSums {
    fn infer_shape(&self, inputs: &[Shape]) -> Result<Vec<Shape>, Error> {
        match inputs[0][..] {
            [rows, _] => Ok(vec![Shape::new(&[rows])]),
            _ => Err(Error::new(ErrorKind::Shape, format!("a matrix is wanted, not {}", inputs[0]))),
        }
    }

    fn infer_dtype(&self, _: &[DType]) -> Result<Vec<DType>, Error> {
        Ok(vec![DType::F64])
    }

    fn run(&self, inputs: &[TensorRef<'_>], outputs: &mut [TensorMut<'_>]) -> Result<(), Error> {
        let (values, columns) = (inputs[0].as_slice::<f32>()?, inputs[0].shape[1]);
        let sums = outputs[0].as_mut_slice::<f64>()?;
        for (sum, row) in sums.iter_mut().zip(values.chunks_exact(columns)) {
            *sum = row.iter().map(|v| f64::from(*v)).sum();
        }
        Ok(())
    }
}

#[test]
fn an_operator_decides_shapes_and_types_and_runs_in_many_threads() {
    register_operator("row_sums", |_| Ok(RowSums));
    let model = model("row_sums", "").expect("the model loads");
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let model = &model;
            scope.spawn(move || {
                for _ in 0..20 {
                    let x = [-1.0 - thread as f32, -2.0, 5.0, 6.0];
                    let z = model.run([("x", ([2, 2], &x))]).expect("an answer");
                    assert_eq!(z[0].to_vec::<f64>().expect("elements"), [30.0 + 10.0 * f64::from(thread), 0.0]);
                }
            });
        }
    });
    let error = model.run([("x", ([4], &[1f32; 4]))]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("a matrix is wanted, not (4,)"), "{error}");
}

#[test]
fn closures_are_operators_and_read_attributes() {
    register_operator("plus", |attrs| {
        let by: f32 = attrs.parse("by", 1.0)?;
        Ok(move |inputs: &[TensorRef<'_>], outputs: &mut [TensorMut<'_>]| {
            let from = inputs[0].as_slice::<f32>()?;
            outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(from).for_each(|(y, x)| *y = x + by);
            Ok(())
        })
    });
    let ask = |attrs: &str| {
        let z = model("plus", attrs)?.run([("x", ([2], &[-1f32, 0.5]))])?;
        Ok::<_, Error>(z[0].to_vec::<f32>()?)
    };
    assert_eq!(ask("").expect("an answer"), [20.0, 5.0]);
    assert_eq!(ask(r#", "by": "2.5""#).expect("an answer"), [35.0, 20.0]);
    let error = ask(r#", "by": "much""#).unwrap_err();
    assert!(error.to_string().contains("by='much'"), "{error}");
    let error = model("minus", "").unwrap_err();
    assert!(error.to_string().contains("Cannot find custom operator minus"), "{error}");
}

#[test]
fn errors_and_panics_of_an_operator_are_those_of_the_call() {
    register_operator("broken", |attrs| {
        let panics: bool = attrs.parse("panics", false)?;
        Ok(move |_: &[TensorRef<'_>], _: &mut [TensorMut<'_>]| match panics {
            true => panic!("a fault of the program"),
            false => Err(Error::new(ErrorKind::Data, "nothing fits")),
        })
    });
    for (attrs, kind, node, words) in [
        ("", ErrorKind::Data, Some("c"), "nothing fits"),
        (r#", "panics": "true""#, ErrorKind::Panic, None, "a fault of the program"),
    ] {
        let error = model("broken", attrs).expect("the model loads").run([("x", ([1], &[1f32]))]).unwrap_err();
        assert_eq!((error.kind(), error.node()), (kind, node), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
