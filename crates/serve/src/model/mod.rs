//! One version of a model: its settings, loading, types of its inputs and outputs, and calls.

mod config;
mod explain;
mod feed;
mod graph;
mod interface;
mod labels;
mod load;
mod notes;
mod types;

pub(crate) use config::{ConfigTensor, ModelConfig};
pub(crate) use feed::{Feed, TensorPart};
pub(crate) use interface::{Interface, NamedOutput, NamedTensor};
pub(crate) use load::Loading;

use crate::background::spawn;
use crate::batch::{BatchAnswer, Batcher, Calls};
use crate::graph_call::{panicked, run};
use crate::holds::{Holds, Kept};
use crate::hooks::Hooks;
use crate::metrics::ModelMetrics;
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::settings::ModelSettings;
use crate::turns::{CallPermit, ModelShare};
use labels::Labels;
use mxrt_engine::{Engine, FailureKind, OpError};
use mxrt_graph::{BoundOp, CallOptions};
use mxrt_tensor::{Context, DType, NDArray, PartialShape, Shape, TensorType};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Name of the platform in metadata of models.
pub(crate) const PLATFORM: &str = "mxnet_mxrt";

/// Name, type and shape of an input or output, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct TensorInfo {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: PartialShape,
}

impl TensorInfo {
    /// Checks that a tensor is of this type.
    fn check(&self, tensor: &TensorType) -> Result<(), Refusal> {
        NamedTensor::from(self).check(&tensor.into())
    }
}

/// Argument of the bound graph.
#[derive(Clone, Copy, Debug)]
enum GraphArgument {
    /// the input of this number
    Input(usize),
    /// the label of this number: zeros, whose shape follows from the inputs
    Label(usize),
}

/// Loaded model, which any number of requests use concurrently.
pub struct Model {
    pub(crate) name: String,
    pub(crate) version: String,
    /// tensors of requests
    pub(crate) inputs: Vec<TensorInfo>,
    pub(crate) outputs: Vec<TensorInfo>,
    /// inputs of the graph, which are made of them
    pub(crate) feeds: Vec<Feed>,
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) settings: ModelSettings,
    pub(crate) queue: Arc<Queue>,
    /// names of classes; empty: not known
    pub(crate) classes: Vec<String>,
    /// hooks that are called before and after the model
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    /// estimated bytes of the engine's memory that it uses
    pub(crate) memory: u64,
    /// reason for which no call was made at loading; none: a call succeeded
    pub(crate) untried: Option<String>,
    /// whether its last operator makes probabilities
    pub(crate) gives_probabilities: bool,
    /// permits for its hooks, so that other models keep threads for theirs
    pub(crate) hook_places: Arc<Semaphore>,
    /// tensors that requests by the protocol name: the model's own, or those that its hooks declare
    pub(crate) offered: Interface,
    /// tensors of the model itself
    own: Interface,
    /// whether its hooks make the inputs of tensors that they declare, and such of the outputs
    pub(crate) decodes: bool,
    pub(crate) encodes: bool,
    /// whether its hooks read the bodies of requests or write those of responses
    pub(crate) hooks_bodies: bool,
    share: ModelShare,
    engine: &'static Engine,
    bound: Arc<BoundOp>,
    /// types of the graph's inputs; none for those that a call passes
    types: Vec<Option<TensorType>>,
    arguments: Vec<GraphArgument>,
    labels: Arc<Labels>,
    /// batcher that joins requests, or the reason for not joining
    batching: Result<Batcher, &'static str>,
    /// note in the metadata about the bits of joined rows
    bits: &'static str,
}

fn bad(message: String) -> OpError {
    OpError::new(FailureKind::Value, message)
}

impl Model {
    /// Returns types of the inputs for a number of rows. Returns `None` if other extents are free
    /// too.
    pub(crate) fn sample(&self, rows: usize) -> Option<Vec<TensorType>> {
        let of_rows = |feed: &Feed| {
            let input = &feed.info;
            let mut extents = input.shape.dims()?.to_vec();
            if let Some(first) = extents.first_mut() {
                first.get_or_insert(rows);
            }
            Some(TensorType { dtype: input.dtype, shape: PartialShape::from_dims(extents).complete()? })
        };
        self.feeds.iter().map(of_rows).collect()
    }

    /// Returns the metadata of the protocol, with the list of serving versions.
    pub(crate) fn metadata(&self, versions: &[String]) -> Value {
        let tensor =
            |of: &NamedTensor| json!({ "name": of.name, "datatype": of.datatype.name(), "shape": of.extents() });
        json!({
            "name": self.name,
            "versions": versions,
            "platform": PLATFORM,
            "inputs": self.offered.inputs.iter().map(tensor).collect::<Vec<_>>(),
            "outputs": self.offered.outputs.iter().map(tensor).collect::<Vec<_>>(),
            "parameters": {
                "batch": match &self.batching {
                    Ok(batcher) => format!("at most {} rows; {}", batcher.max(), self.bits),
                    Err(reason) => format!("off: {reason}"),
                },
                "tried": self.untried.as_deref().unwrap_or("yes"),
            },
        })
    }

    /// Returns the largest number of rows of a batch. `None` if requests are not joined, or if the
    /// first axes of their tensors are not rows, as those of a csr matrix are not, and those of
    /// tensors that hooks declare need not be.
    pub(crate) fn most_rows(&self) -> Option<usize> {
        let batcher = self.batching.as_ref().ok()?;
        let rows = self.feeds.iter().all(|feed| !feed.is_csr()) && !self.decodes && !self.encodes;
        rows.then(|| batcher.max())
    }

    /// Describes, as text, how a number of rows is computed.
    pub(crate) fn plan(&self, rows: usize) -> Result<String, Refusal> {
        let unknown = || Refusal::invalid("the shapes of the model's inputs are not known: its settings say none");
        let inputs = self.sample(rows).ok_or_else(unknown)?;
        let labels = self.labels.types(inputs.iter().map(|tensor| tensor.shape.clone()).collect());
        let labels = labels.map_err(|error| Refusal::of_call(&error))?;
        let mut given = self.arguments.iter().map(|argument| match *argument {
            GraphArgument::Input(i) => inputs[i].clone(),
            GraphArgument::Label(i) => labels[i].clone(),
        });
        let types: Option<Vec<_>> = self.types.iter().map(|tensor| tensor.clone().or_else(|| given.next())).collect();
        let lost = || Refusal::failed("the inputs of the graph are not those of the model");
        self.bound.op().plan_text(&types.ok_or_else(lost)?).map_err(|error| Refusal::of_call(&error))
    }

    /// Refuses a request that would miss its deadline, estimated from recent calls.
    pub(crate) fn check_deadline(&self, options: CallOptions) -> Result<(), Refusal> {
        let Some(deadline) = options.deadline else { return Ok(()) };
        let estimate = match self.batcher() {
            Some(batcher) => batcher.estimate(self.share.usual()),
            None => self.share.estimate(options.priority),
        };
        let late = |time: &Duration| Instant::now().checked_add(*time).is_none_or(|end| end > deadline);
        estimate.filter(late).map_or(Ok(()), |time| Err(Refusal::would_be_late(time)))
    }

    /// Adds the arrays of labels to those of inputs, in the order of the graph.
    fn arguments(&self, inputs: Vec<NDArray>, labels: &[TensorType]) -> Result<Vec<NDArray>, OpError> {
        if labels.is_empty() {
            return Ok(inputs);
        }
        let argument = |argument: &GraphArgument| match *argument {
            GraphArgument::Input(i) => Ok(inputs[i].clone()),
            GraphArgument::Label(i) => NDArray::new(self.engine, Context::cpu(0), labels[i].clone()),
        };
        self.arguments.iter().map(argument).collect()
    }

    /// Returns the types of labels for these inputs. Infers them in a background thread if they are
    /// not cached.
    async fn types_of_labels(&self, inputs: &[NDArray]) -> Result<Vec<TensorType>, OpError> {
        let shapes = shapes(inputs);
        if let Some(known) = self.labels.known(&shapes) {
            return Ok(known);
        }
        let labels = self.labels.clone();
        let types = spawn(move || labels.types(shapes))?.await;
        types.unwrap_or_else(|error| Err(panicked(&error)))
    }
}

fn shapes(arrays: &[NDArray]) -> Vec<Shape> {
    arrays.iter().map(|array| array.shape().clone()).collect()
}

impl Model {
    /// Returns the rows of a request: the first extent of its inputs if that is the batch.
    pub(crate) fn rows(&self, inputs: &[NDArray]) -> usize {
        let first = self.feeds.first().and_then(|feed| feed.info.shape.dims()).and_then(|dims| dims.first());
        match (first, inputs.first()) {
            (Some(None), Some(array)) => array.shape().first().copied().unwrap_or(1),
            _ => 1,
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({} {}: {:?} -> {:?})", self.name, self.version, self.inputs, self.outputs)
    }
}

impl Calls for Model {
    fn batcher(&self) -> Option<&Batcher> {
        self.batching.as_ref().ok()
    }

    fn engine(&self) -> &'static Engine {
        self.engine
    }

    /// Runs the model when its permit is granted. The arrays are those of all inputs, in their
    /// order. The results are complete when this returns. If the future is dropped first, a call
    /// that has not started does not run.
    async fn call(&self, arrays: Vec<NDArray>, options: CallOptions, holds: Holds) -> BatchAnswer {
        let came = Instant::now();
        let turn = self.share.turn(options.priority).await.in_time(options.deadline)?;
        let began = Instant::now();
        if self.batching.is_err() {
            self.waited(began - came);
        }
        let labels = self.types_of_labels(&arrays).await.map_err(|e| Refusal::of_call(&e))?;
        let arguments = self.arguments(arrays, &labels).map_err(|e| Refusal::of_call(&e))?;
        let calling = Arc::new(Calling { turn, _holds: holds });
        let results = run(self.engine, &self.bound, arguments, options, calling).await?;
        self.metrics.compute.add(began.elapsed());
        Ok(results)
    }

    fn waited(&self, time: Duration) {
        self.metrics.queue.add(time);
    }

    fn rank(&self, priority: i32) -> i64 {
        self.share.rank(priority)
    }

    fn joined(&self, rows: usize) {
        self.metrics.batch.add_rows(rows);
    }
}

/// Permit and other holds of a call, kept until the engine has ended it.
struct Calling {
    turn: CallPermit,
    _holds: Holds,
}

impl Kept for Calling {
    fn ended(&self, well: bool) {
        if well {
            self.turn.ran();
        }
    }
}

/// Lists names, at most eight of them.
fn listed(names: &[&String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
