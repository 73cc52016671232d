//! Types of what a stage makes, where the program must be asked for them.

use super::inputs::NodeSignature;
use super::stage_call::{Begin, StageCall};
use crate::ir::{GraphNode, PartialType, describe, infer_node};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Engine, FailureKind, OpError, Resume};
use mxrt_ops::Callback;
use mxrt_tensor::TensorType;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Signatures that are remembered.
const MAX_SIGNATURES: usize = 64;

/// Types of the outputs of a node; none of those that follow from contents.
pub(super) type NodeOutputs = Arc<[Option<TensorType>]>;

/// Answer of the program, once it has come.
pub(super) type ProgramAnswer<T> = Arc<OnceLock<T>>;

/// The types that a stage needs before it begins.
pub(super) enum StageTypes {
    Known(NodeOutputs),
    /// The program is asked by this function.
    Asked(TypesAnswer, Begin),
}

/// The types that the program says.
pub(super) type TypesAnswer = ProgramAnswer<Result<NodeOutputs, OpError>>;

/// The types of the outputs of a node by those of its inputs.
pub(super) struct OutputTypes {
    node: GraphNode,
    /// an operator of the program that is, or is in, the node
    asked: Option<Callback>,
    known: Mutex<HashMap<NodeSignature, NodeOutputs>>,
}

impl OutputTypes {
    pub fn new(node: GraphNode) -> OutputTypes {
        let asked = find_callback(&node);
        OutputTypes { node, asked, known: Mutex::default() }
    }

    pub fn node(&self) -> &GraphNode {
        &self.node
    }

    /// The types for a call: those that were asked for, or are known, or are asked for now.
    pub fn of_call(self: &Arc<Self>, call: &StageCall<'_>, asked: Option<&TypesAnswer>) -> Result<StageTypes, OpError> {
        let types = match asked {
            Some(answer) => answer.get().cloned().unwrap_or_else(|| Err(not_answered())),
            None => {
                let inputs = call.inputs.signature();
                match self.get(&inputs) {
                    Some(types) => types,
                    None => {
                        let (answer, begin) = self.ask(call.request.engine, inputs);
                        return Ok(StageTypes::Asked(answer, begin));
                    }
                }
            }
        };
        types.map(StageTypes::Known).map_err(|error| self.describe(call, error))
    }

    /// Says of an error which node, with which inputs, it is about, unless it says so itself.
    pub fn describe(&self, call: &StageCall<'_>, error: OpError) -> OpError {
        if error.inherited().is_some() || error.node.is_some() {
            return error;
        }
        let types = call.inputs.all_types();
        describe(error, (self.node.stands_for, &self.node.name, &self.node.attr_text), types.iter())
    }

    /// The types, if they are known without asking the program.
    fn get(&self, inputs: &NodeSignature) -> Option<Result<NodeOutputs, OpError>> {
        if let Some(known) = self.known.lock().get(inputs) {
            return Some(Ok(known.clone()));
        }
        self.asked.is_none().then(|| self.infer(inputs))
    }

    /// Has the program asked where it can be: not in a thread of the engine. Returns the place of
    /// the answer, and what begins to ask.
    fn ask(self: &Arc<Self>, engine: &'static Engine, inputs: NodeSignature) -> (TypesAnswer, Begin) {
        let answer = TypesAnswer::default();
        let (asked, told) = (self.clone(), answer.clone());
        let begin = move |resume: Resume| {
            let (of_node, open) = (asked.clone(), Mutex::new(Some(resume)));
            let question = Arc::new(move || {
                let types = of_node.infer(&inputs);
                // A child has both halves of this or none.
                engine.without_fork(|| {
                    if let Some(resume) = open.lock().take() {
                        let _ = told.set(types);
                        resume.resume();
                    }
                });
            });
            match &asked.asked {
                Some(callback) => callback.ask(question),
                None => question(),
            }
        };
        (answer, Box::new(begin))
    }

    /// Remembers types that are known already.
    pub fn learn(&self, inputs: NodeSignature, outputs: NodeOutputs) {
        let mut known = self.known.lock();
        if known.len() >= MAX_SIGNATURES {
            known.clear();
        }
        known.insert(inputs, outputs);
    }

    fn infer(&self, inputs: &NodeSignature) -> Result<NodeOutputs, OpError> {
        let partial = |t: &Option<TensorType>| t.as_ref().map_or(PartialType::UNKNOWN, PartialType::from);
        let given: Vec<PartialType> = inputs.iter().map(partial).collect();
        let outputs: NodeOutputs = infer_node(&self.node, &given)?.iter().map(PartialType::complete).collect();
        self.learn(inputs.clone(), outputs.clone());
        Ok(outputs)
    }
}

/// The error of a request that resumes without an answer.
pub(super) fn not_answered() -> OpError {
    OpError::new(FailureKind::NotCompleted, "the program did not answer the call of its operator")
}

fn find_callback(node: &GraphNode) -> Option<Callback> {
    node.callback().or_else(|| node.flow.as_ref()?.nodes().find_map(find_callback))
}
