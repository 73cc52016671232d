//! Operators that a Rust program defines.

use crate::{DType, Error, Shape};
use mxrt_engine::{FailureKind, OpError};
use mxrt_engine::{ForkSafeOnce, ForkSafeRwLock};
use mxrt_ops::register_custom_operators;
use mxrt_ops::{CustomCall, CustomOperator, CustomOperators, CustomTypes};
use mxrt_ops::{Kernel, Signature, kernel_fn};
use mxrt_tensor::{PartialShape, TensorMut, TensorRef};
use std::str::FromStr;
use std::sync::Arc;

/// An operator of the program, which `Custom` nodes of graphs run like any other: as a step of a
/// plan, in threads of the engine.
///
/// A closure of inputs and outputs is an operator with one input and one output of the same type.
pub trait Operator: Send + Sync + 'static {
    /// Names of the inputs.
    fn inputs(&self) -> Vec<String> {
        vec!["data".to_owned()]
    }

    /// Names of the outputs.
    fn outputs(&self) -> Vec<String> {
        vec!["output".to_owned()]
    }

    /// Shapes of the outputs. Without it each is that of the first input.
    fn infer_shape(&self, inputs: &[Shape]) -> Result<Vec<Shape>, Error> {
        Ok(vec![inputs.first().cloned().unwrap_or_default(); self.outputs().len()])
    }

    /// Element types of the outputs. Without it each is that of the first input.
    fn infer_dtype(&self, inputs: &[DType]) -> Result<Vec<DType>, Error> {
        Ok(vec![inputs.first().copied().unwrap_or(DType::F32); self.outputs().len()])
    }

    /// Fills the outputs, whose content is arbitrary before. Several threads call it concurrently.
    /// It may not wait for arrays. A panic is an error of kind `Panic`.
    fn run(&self, inputs: &[TensorRef<'_>], outputs: &mut [TensorMut<'_>]) -> Result<(), Error>;
}

impl<F> Operator for F
where
    F: Fn(&[TensorRef<'_>], &mut [TensorMut<'_>]) -> Result<(), Error> + Send + Sync + 'static,
{
    fn run(&self, inputs: &[TensorRef<'_>], outputs: &mut [TensorMut<'_>]) -> Result<(), Error> {
        self(inputs, outputs)
    }
}

/// The attributes of a `Custom` node, all of them text.
#[derive(Clone, Copy, Debug)]
pub struct OperatorAttrs<'a>(&'a [(&'a str, &'a str)]);

impl<'a> OperatorAttrs<'a> {
    /// The text of an attribute.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// An attribute as a number or what else text can be; `default` where it is not set.
    pub fn parse<T: FromStr>(&self, name: &str, default: T) -> Result<T, Error> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.parse().map_err(|_| {
            let message = format!("the attribute {name}='{text}' is no {}", std::any::type_name::<T>());
            Error::new(FailureKind::Value, message)
        })
    }
}

type Make = dyn Fn(OperatorAttrs<'_>) -> Result<Arc<dyn Operator>, Error> + Send + Sync;

static OPERATORS: ForkSafeRwLock<Vec<(String, Arc<Make>)>> = ForkSafeRwLock::new(Vec::new());

/// Registers an operator, for models that are loaded later: it runs nodes of the operator `Custom`
/// whose attribute `op_type` is this name. `make` gets the node's other attributes. A name that is
/// registered again means the newer operator.
///
/// ```
/// # fn main() -> Result<(), mxrt::Error> {
/// use mxrt::types::{TensorMut, TensorRef};
///
/// mxrt::operators::register_operator("scale", |attrs| {
///     let by: f32 = attrs.parse("by", 1.0)?;
///     Ok(move |inputs: &[TensorRef<'_>], outputs: &mut [TensorMut<'_>]| {
///         let from = inputs[0].as_slice::<f32>()?;
///         outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(from).for_each(|(y, x)| *y = by * x);
///         Ok(())
///     })
/// });
/// let json = r#"{"nodes": [
///     {"op": "null", "name": "x", "inputs": []},
///     {"op": "Custom", "name": "y", "attrs": {"op_type": "scale", "by": "3"}, "inputs": [[0, 0, 0]]}],
///     "arg_nodes": [0], "heads": [[1, 0, 0]]}"#;
/// let symbol = mxrt::Symbol::load_json(json)?.symbol;
/// let model = mxrt::Model::builder().from_symbol(symbol, Default::default())?;
/// let y = model.run([("x", ([2], &[1.0f32, 2.0]))])?;
/// assert_eq!(y[0].to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub fn register_operator<O: Operator>(
    name: impl Into<String>,
    make: impl Fn(OperatorAttrs<'_>) -> Result<O, Error> + Send + Sync + 'static,
) {
    static SOURCE: ForkSafeOnce<()> = ForkSafeOnce::new();
    SOURCE.get_or_init(|| register_custom_operators(Arc::new(Registered)));
    let make: Arc<Make> = Arc::new(move |attrs| Ok(Arc::new(make(attrs)?)));
    let name = name.into();
    let mut operators = OPERATORS.write();
    operators.retain(|(known, _)| *known != name);
    operators.push((name, make));
}

/// Finds what was registered.
struct Registered;

impl CustomOperators for Registered {
    fn make(&self, op_type: &str, attrs: &[(&str, &str)]) -> Result<Option<Arc<dyn CustomOperator>>, OpError> {
        let make = OPERATORS.read().iter().find(|(name, _)| name == op_type).map(|(_, make)| make.clone());
        let Some(make) = make else { return Ok(None) };
        Ok(Some(Arc::new(Adapter(make(OperatorAttrs(attrs))?))))
    }
}

/// An operator as graphs ask for it.
struct Adapter(Arc<dyn Operator>);

/// The error of a question that came too early.
fn incomplete() -> OpError {
    OpError::new(FailureKind::Shape, "the types of the inputs are not known yet")
}

impl CustomOperator for Adapter {
    fn arguments(&self) -> Vec<String> {
        self.0.inputs()
    }

    fn states(&self) -> Vec<String> {
        Vec::new()
    }

    fn outputs(&self) -> Vec<String> {
        self.0.outputs()
    }

    fn infer_shape(&self, arguments: &[PartialShape]) -> Result<CustomTypes<PartialShape>, OpError> {
        let shapes = arguments.iter().map(PartialShape::complete).collect::<Option<Vec<Shape>>>();
        let outputs = self.0.infer_shape(&shapes.ok_or_else(incomplete)?)?;
        let outputs = outputs.into_iter().map(PartialShape::from).collect();
        Ok(CustomTypes { arguments: arguments.to_vec(), states: Vec::new(), outputs })
    }

    fn infer_dtype(&self, arguments: &[Option<DType>]) -> Result<CustomTypes<Option<DType>>, OpError> {
        let dtypes = arguments.iter().copied().collect::<Option<Vec<DType>>>();
        let outputs = self.0.infer_dtype(&dtypes.ok_or_else(incomplete)?)?;
        let outputs = outputs.into_iter().map(Some).collect();
        Ok(CustomTypes { arguments: arguments.to_vec(), states: Vec::new(), outputs })
    }

    fn begin(&self, call: CustomCall) {
        call.finish(Err(OpError::new(FailureKind::NotImplemented, "the operator runs as a kernel")));
    }

    fn runs_as_kernel(&self) -> bool {
        true
    }

    fn kernel(&self, signature: &Signature<'_>) -> Option<Box<dyn Kernel>> {
        let operator = self.0.clone();
        Some(kernel_fn(signature, move |call| Ok(operator.run(call.inputs, call.outputs)?)))
    }
}
