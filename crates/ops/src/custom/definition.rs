//! Definitions of callback operators by the program, and the registry of their sources.

use super::CustomCall;
use crate::prelude::*;
use mxrt_engine::{ForkSafeMutex, ForkSafeRwLock};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

/// Shapes or element types around a node, as far as they are known.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTypes<T> {
    /// shapes or types of the arguments
    pub arguments: Vec<T>,
    /// shapes or types of the auxiliary states
    pub states: Vec<T>,
    /// shapes or types of the outputs
    pub outputs: Vec<T>,
}

/// An operator of the program with its attributes. All functions may be called from several threads
/// concurrently.
pub trait CustomOperator: Send + Sync {
    /// Names of the arguments. This and the next two functions are called once.
    fn arguments(&self) -> Vec<String>;
    /// Names of the auxiliary states, which calls read and write.
    fn states(&self) -> Vec<String>;
    /// Names of the outputs.
    fn outputs(&self) -> Vec<String>;
    /// The shapes that follow from those of the arguments. Their number is that of the names.
    fn infer_shape(&self, arguments: &[PartialShape]) -> Result<CustomTypes<PartialShape>, OpError>;
    /// The element types that follow from those of the arguments. Their number is that of the
    /// names.
    fn infer_dtype(&self, arguments: &[Option<DType>]) -> Result<CustomTypes<Option<DType>>, OpError>;
    /// Hands a call to a thread of the program, and returns at once: the calling thread is one of
    /// the engine. A call that is dropped fails.
    fn begin(&self, call: CustomCall);
    /// Whether threads of the engine run the operator, by its [`kernel`](Self::kernel). Calls then
    /// never begin. Operators with auxiliary states have none.
    fn runs_as_kernel(&self) -> bool {
        false
    }
    /// The kernel for these types, of an operator that [runs as one](Self::runs_as_kernel).
    fn kernel(&self, signature: &Signature<'_>) -> Option<Box<dyn Kernel>> {
        let _ = signature;
        None
    }
    /// Runs a question about types, and returns at once: the calling thread is one of the engine.
    /// An operator whose other functions may be called there runs the question itself.
    fn ask(&self, question: Question) {
        question();
    }
}

/// A function that asks the program for types. A forked child, which lacks the thread that runs it,
/// runs it again. If it is dropped unasked, the calls that wait for the answer fail.
pub type Question = Arc<dyn Fn() + Send + Sync>;

/// A source of operators of the program.
pub trait CustomOperators: Send + Sync {
    /// The operator of this name with these attributes. `None` if the source does not know the
    /// name.
    fn make(&self, op_type: &str, attrs: &[(&str, &str)]) -> Result<Option<Arc<dyn CustomOperator>>, OpError>;
}

static SOURCES: ForkSafeRwLock<Vec<Arc<dyn CustomOperators>>> = ForkSafeRwLock::new(Vec::new());

/// Adds a source of operators. Sources that were added before are asked first.
pub fn register_custom_operators(source: Arc<dyn CustomOperators>) {
    SOURCES.write().push(source);
}

/// Limit of the remembered answers to each question: one per signature with which a model is
/// called.
const REMEMBERED: usize = 32;

/// Remembered answers of the program, since compilation asks the same questions many times.
struct AnswerMemory<T>(ForkSafeMutex<VecDeque<RememberedTypes<T>>>);

/// A question and the answer to it.
type RememberedTypes<T> = (Vec<T>, Arc<CustomTypes<T>>);

impl<T: Clone + PartialEq> AnswerMemory<T> {
    /// The answer to a question. The program is asked while no lock is held.
    fn get(
        &self,
        question: &[T],
        ask: impl FnOnce() -> Result<CustomTypes<T>, OpError>,
    ) -> Result<Arc<CustomTypes<T>>, OpError> {
        if let Some((_, answer)) = self.0.lock().iter().find(|(asked, _)| asked == question) {
            return Ok(answer.clone());
        }
        let answer = Arc::new(ask()?);
        let mut known = self.0.lock();
        known.truncate(REMEMBERED - 1);
        known.push_front((question.to_vec(), answer.clone()));
        Ok(answer)
    }
}

/// The operator of a node, and the answers that it has given about itself.
pub(crate) struct CustomNode {
    pub operator: Arc<dyn CustomOperator>,
    op_type: String,
    /// names of the arguments, then of the states
    pub inputs: Vec<String>,
    pub arguments: usize,
    pub outputs: Vec<String>,
    shapes: AnswerMemory<PartialShape>,
    dtypes: AnswerMemory<Option<DType>>,
}

impl CustomNode {
    /// Finds the operator that the attributes name, for [`AttrKind::Object`].
    pub fn parse(given: &[(&str, &str)]) -> Result<Arc<dyn Any + Send + Sync>, OpError> {
        let Some((_, op_type)) = given.iter().find(|(key, _)| *key == "op_type") else {
            return Err(value_error("Required argument `op_type` is missing."));
        };
        let others: Vec<(&str, &str)> = given.iter().filter(|(key, _)| *key != "op_type").copied().collect();
        let sources = SOURCES.read().clone();
        for source in sources {
            if let Some(operator) = source.make(op_type, &others)? {
                return Ok(Arc::new(CustomNode::new(op_type, operator)));
            }
        }
        Err(value_error(format!(
            "Cannot find custom operator {op_type}: register it with mx.operator.register('{op_type}') before the \
             graph is made or loaded"
        )))
    }

    fn new(op_type: &str, operator: Arc<dyn CustomOperator>) -> CustomNode {
        let mut inputs = operator.arguments();
        let arguments = inputs.len();
        inputs.extend(operator.states());
        let outputs = operator.outputs();
        let (shapes, dtypes) = (AnswerMemory(ForkSafeMutex::default()), AnswerMemory(ForkSafeMutex::default()));
        CustomNode { operator, op_type: op_type.to_owned(), inputs, arguments, outputs, shapes, dtypes }
    }

    pub fn states(&self) -> usize {
        self.inputs.len() - self.arguments
    }

    /// Checks that an answer has as many parts as there are names.
    fn check<T>(&self, what: &str, types: CustomTypes<T>) -> Result<CustomTypes<T>, OpError> {
        let numbers = [
            ("arguments", types.arguments.len(), self.arguments),
            ("outputs", types.outputs.len(), self.outputs.len()),
            ("auxiliary states", types.states.len(), self.states()),
        ];
        match numbers.into_iter().find(|(_, have, want)| have != want) {
            None => Ok(types),
            Some((part, have, want)) => {
                let message = format!("{what} of '{}' returned {have} entries for its {want} {part}", self.op_type);
                Err(value_error(message))
            }
        }
    }

    /// Fills in the shapes. While those of arguments are unknown, the program may not know others
    /// yet.
    pub fn infer_shape(&self, shapes: &mut Shapes<'_>) -> Result<(), OpError> {
        let known = shapes.inputs.get(..self.arguments).unwrap_or_default().to_vec();
        let ask = || self.check("infer_shape", self.operator.infer_shape(&known)?);
        let answer = match self.shapes.get(&known, ask) {
            Err(_) if !known.iter().all(PartialShape::is_complete) => return Ok(()),
            answer => answer?,
        };
        for (i, shape) in answer.arguments.iter().chain(&answer.states).enumerate() {
            let name = self.inputs.get(i).map_or("an input", String::as_str);
            shapes.set_input(i, name, shape.clone())?;
        }
        answer.outputs.iter().enumerate().try_for_each(|(i, shape)| shapes.set_output(i, shape.clone()))?;
        self.states_out(&answer.states).try_for_each(|(i, shape)| shapes.set_output(i, shape.clone()))
    }

    /// Fills in the element types.
    pub fn infer_dtype(&self, dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
        let known = dtypes.inputs.get(..self.arguments).unwrap_or_default().to_vec();
        let ask = || self.check("infer_type", self.operator.infer_dtype(&known)?);
        let answer = match self.dtypes.get(&known, ask) {
            Err(_) if !known.iter().all(Option::is_some) => return Ok(()),
            answer => answer?,
        };
        for (i, dtype) in answer.arguments.iter().chain(&answer.states).enumerate() {
            let name = self.inputs.get(i).map_or("an input", String::as_str);
            dtype.map_or(Ok(()), |dtype| dtypes.set_input(i, name, dtype))?;
        }
        let outputs = answer.outputs.iter().enumerate().chain(self.states_out(&answer.states));
        for (i, dtype) in outputs {
            dtype.map_or(Ok(()), |dtype| dtypes.set_output(i, dtype))?;
        }
        Ok(())
    }

    /// The types of the new states, with their numbers as outputs, which follow the visible ones.
    fn states_out<'a, T>(&self, states: &'a [T]) -> impl Iterator<Item = (usize, &'a T)> {
        let first = self.outputs.len();
        states.iter().enumerate().map(move |(i, state)| (first + i, state))
    }
}
