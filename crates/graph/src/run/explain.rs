//! Explains errors about the types of a call's arrays in terms of the inputs: which one is wrong,
//! what was given, what is expected, and what to do.
//!
//! Inference names the node where types contradict, which is often a weight far from the cause. The
//! cause is found by trials. An input is to blame if the graph is consistent when nothing is known
//! of it. The expected type is the nearest one with which the whole graph is consistent.

use crate::ir::{Graph, PartialType, Value, infer_inputs};
use mxrt_engine::{FailureKind, OpError, WrongInput};
use mxrt_tensor::{DType, PartialShape, Shape, TensorType};
use std::cell::Cell;

/// Limit of the types that are tried for one error.
const MAX_TRIALS: usize = 96;

/// Approximate limit of the nodes visited for one error. Large graphs get fewer trials.
const MAX_VISITS: usize = 100_000;

/// Extents that are tried for axes in addition to those of the parameters; usual sizes of images
/// first.
const SIZES: [usize; 26] = [
    224, 299, 32, 28, 64, 112, 128, 256, 512, 416, 320, 300, 608, 640, 384, 448, 331, 227, 160, 192, 96, 48, 24, 16, 8,
    1,
];

/// An extent that fits an axis only if every extent does.
const UNUSUAL: usize = 7919;

/// Other orders of axes, selected by number of axes: channels first for channels last, and the
/// reverse.
const ORDERS: [&[usize]; 5] = [&[1, 0], &[0, 2, 1], &[0, 3, 1, 2], &[0, 2, 3, 1], &[0, 4, 1, 2, 3]];

/// Puts before an error about these types of all inputs which array of the call is wrong. `given`
/// are the inputs whose arrays the call names.
pub(super) fn explain(mut error: OpError, graph: &Graph, types: &[TensorType], given: &[usize]) -> OpError {
    if !matches!(error.kind, FailureKind::Shape | FailureKind::Type) || error.inherited().is_some() {
        return error;
    }
    let is_data = |i: &usize| graph.inputs.get(*i).is_some_and(|input| !input.constant);
    let data: Vec<usize> = given.iter().copied().filter(is_data).collect();
    let Some(Finding { words, input }) = Search::new(graph, types, &error).finding(&data) else { return error };
    error.input = input;
    let place = error.subject().map_or_else(String::new, |subject| format!("{subject}: "));
    let message = error.message.strip_prefix(&place).unwrap_or(&error.message);
    // What the node advises would change the model, not the input.
    let fact = message.split_once("; use astype(").map_or(message, |(fact, _)| fact);
    error.message = format!("{words}. {place}{fact}");
    error
}

/// Result of a search: words for the message, and the wrong input, if it was found.
struct Finding {
    words: String,
    input: Option<WrongInput>,
}

/// Change that would make an input fit.
struct Remedy {
    wanted: String,
    advice: String,
}

struct Search<'a> {
    graph: &'a Graph,
    types: &'a [TensorType],
    /// the node that the error names
    node: Option<&'a str>,
    kind: FailureKind,
    trials: Cell<usize>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, types: &'a [TensorType], error: &OpError) -> Search<'a> {
        let node = error.node.as_deref().and_then(|name| graph.nodes.iter().find(|n| *n.name == *name));
        let trials = MAX_TRIALS.min(MAX_VISITS / graph.nodes.len().max(1));
        Search { graph, types, node: node.map(|n| &*n.name), kind: error.kind, trials: Cell::new(trials) }
    }

    /// Finds the inputs that are to blame. `None` if parameters contradict each other or nothing
    /// was found.
    fn finding(&self, data: &[usize]) -> Option<Finding> {
        if self.consistent(&[]).is_some() {
            return None;
        }
        if self.kind == FailureKind::Type {
            return self.of_dtypes(data);
        }
        let to_blame = |i: &usize| self.consistent(&[(*i, self.with_shape(*i, PartialShape::UNKNOWN))]).is_some();
        let mut blamed = data.iter().copied().filter(to_blame);
        if let Some((input, remedy)) = blamed.find_map(|i| Some((i, self.shape_remedy(i)?))) {
            return Some(self.of_shape(input, remedy));
        }
        // The cause may be elsewhere: what was passed is said without a judgement.
        let passed: Vec<String> =
            data.iter().map(|i| format!("'{}' of shape {}", self.name(*i), self.types[*i].shape)).collect();
        (!passed.is_empty()).then(|| Finding { words: format!("for input {}", passed.join(", ")), input: None })
    }

    fn of_shape(&self, input: usize, remedy: Remedy) -> Finding {
        let (name, got, Remedy { wanted, advice }) = (self.name(input), &self.types[input].shape, remedy);
        let words = format!("input '{name}': got {got}, wanted {wanted}: {advice}");
        Finding { words, input: Some(self.wrong(input, got, wanted)) }
    }

    fn wrong(&self, input: usize, got: &dyn std::fmt::Display, wanted: String) -> WrongInput {
        WrongInput { name: self.name(input).to_owned(), got: Some(got.to_string()), wanted: Some(wanted) }
    }

    fn name(&self, input: usize) -> &str {
        &self.graph.inputs[input].name
    }

    // ---- trials ---------------------------------------------------------------------------------

    /// Infers what is known of the inputs after these changes. `None` if types contradict, or the
    /// limit of trials is reached.
    fn consistent(&self, changes: &[(usize, PartialType)]) -> Option<Vec<PartialType>> {
        self.trials.set(self.trials.get().checked_sub(1)?);
        let mut types: Vec<PartialType> = self.types.iter().map(PartialType::from).collect();
        for (input, changed) in changes {
            types[*input] = changed.clone();
        }
        infer_inputs(self.graph, &types).ok()
    }

    fn with_shape(&self, input: usize, shape: PartialShape) -> PartialType {
        PartialType { shape, dtype: Some(self.types[input].dtype) }
    }

    fn fits(&self, input: usize, shape: &[usize]) -> bool {
        self.consistent(&[(input, self.with_shape(input, (&Shape::new(shape)).into()))]).is_some()
    }

    // ---- dtypes ---------------------------------------------------------------------------------

    fn of_dtypes(&self, data: &[usize]) -> Option<Finding> {
        let unknown = |i: usize| PartialType { shape: (&self.types[i].shape).into(), dtype: None };
        let cast = |i: usize, dtype: DType| PartialType { dtype: Some(dtype), ..unknown(i) };
        let all: Vec<_> = data.iter().map(|i| (*i, unknown(*i))).collect();
        let learnt = self.consistent(&all)?;
        let usual = self.parameter_dtype(data);
        let wanted = |i: usize| learnt[i].dtype.or(usual);
        let differing: Vec<usize> =
            data.iter().copied().filter(|i| wanted(*i).is_some_and(|w| w != self.types[*i].dtype)).collect();
        let one = differing
            .iter()
            .find(|i| wanted(**i).is_some_and(|dtype| self.consistent(&[(**i, cast(**i, dtype))]).is_some()));
        let found: &[usize] = one.map_or(&differing[..], std::slice::from_ref);
        let (first, dtype) = (*found.first()?, wanted(*found.first()?)?);
        let changes: Vec<_> = found.iter().filter_map(|i| Some((*i, cast(*i, wanted(*i)?)))).collect();
        self.consistent(&changes)?;
        let names: Vec<String> = found.iter().map(|i| format!("'{}'", self.name(*i))).collect();
        let noun = if found.len() == 1 { "input" } else { "inputs" };
        let got = self.types[first].dtype;
        let words = format!("{noun} {}: got {got}, wanted {dtype}: pass x.astype('{dtype}')", names.join(", "));
        Some(Finding { words, input: Some(self.wrong(first, &got, dtype.to_string())) })
    }

    /// The most frequent element type of the inputs that are not in `data`.
    fn parameter_dtype(&self, data: &[usize]) -> Option<DType> {
        let of_params: Vec<DType> =
            self.types.iter().enumerate().filter(|(i, _)| !data.contains(i)).map(|(_, t)| t.dtype).collect();
        of_params.iter().copied().max_by_key(|dtype| of_params.iter().filter(|d| *d == dtype).count())
    }

    // ---- shapes ---------------------------------------------------------------------------------

    fn shape_remedy(&self, input: usize) -> Option<Remedy> {
        let got: &[usize] = &self.types[input].shape;
        self.other_order(input, got)
            .or_else(|| self.other_axes(input, got))
            .or_else(|| self.other_extents(input, got))
            .or_else(|| self.other_rank(input, got))
    }

    /// Tries the same axes in another order.
    fn other_order(&self, input: usize, got: &[usize]) -> Option<Remedy> {
        ORDERS.iter().filter(|order| order.len() == got.len()).find_map(|order| {
            let wanted: Vec<usize> = order.iter().map(|axis| got[*axis]).collect();
            (wanted != got && self.fits(input, &wanted)).then(|| {
                let axes = Shape::new(order);
                remedy(&wanted, format!("the axes are in another order, pass x.transpose({axes})"))
            })
        })
    }

    /// Tries one axis of extent 1 more or fewer, as if the batch was forgotten, also with channels
    /// last.
    fn other_axes(&self, input: usize, got: &[usize]) -> Option<Remedy> {
        let with_batch = |axes: &[usize]| [&[1], axes].concat();
        let reshaped = |wanted: Vec<usize>, why: &str| {
            let advice = format!("{why}, pass x.reshape({})", Shape::new(&wanted));
            self.fits(input, &wanted).then(|| remedy(&wanted, advice))
        };
        reshaped(with_batch(got), "the batch is missing").or_else(|| {
            if let [height, width, channels] = *got {
                let wanted = [1, channels, height, width];
                if self.fits(input, &wanted) {
                    let batch = Shape::new(&wanted);
                    let advice = format!(
                        "the batch is missing and the channels are last, pass x.transpose((2, 0, \
                         1)).reshape({batch})"
                    );
                    return Some(remedy(&wanted, advice));
                }
            }
            let single = (0..got.len()).filter(|axis| got[*axis] == 1);
            single.into_iter().find_map(|axis| {
                let rest: Vec<usize> = [&got[..axis], &got[axis + 1..]].concat();
                reshaped(rest, &format!("axis {axis} is one too many"))
            })
        })
    }

    /// Tries other extents of one axis, or of the last two axes of an image.
    fn other_extents(&self, input: usize, got: &[usize]) -> Option<Remedy> {
        let free = |axes: &[usize]| {
            let dims = got.iter().enumerate().map(|(axis, n)| (!axes.contains(&axis)).then_some(*n));
            self.consistent(&[(input, self.with_shape(input, PartialShape::from_dims(dims)))])
        };
        let changed = |axes: &[usize], to: usize| -> Vec<usize> {
            got.iter().enumerate().map(|(axis, n)| if axes.contains(&axis) { to } else { *n }).collect()
        };
        let rank = got.len();
        if rank == 4 && free(&[1]).is_none() && free(&[2, 3]).is_some() {
            let found = SIZES.iter().map(|size| changed(&[2, 3], *size)).find(|wanted| self.fits(input, wanted));
            if let Some(wanted) = found {
                return Some(remedy(&wanted, format!("axes 2 and 3 must be {0} and {0}", wanted[2])));
            }
        }
        (1..rank).chain((0..rank).take(1)).find_map(|axis| {
            let learnt = free(&[axis])?[input].shape.dim(axis);
            let found =
                learnt.into_iter().chain(self.candidates()).find(|n| self.fits(input, &changed(&[axis], *n)))?;
            Some(remedy(&changed(&[axis], found), format!("axis {axis} must be {found}, not {}", got[axis])))
        })
    }

    /// Extents of the parameters that the failing node reads, then those of all inputs.
    fn candidates(&self) -> Vec<usize> {
        let read = self.graph.nodes.iter().filter(|n| self.node == Some(&*n.name)).flat_map(|n| &n.inputs);
        let near = read.filter_map(|value| match value {
            Value::Input(i) => self.types.get(*i),
            Value::Node(..) => None,
        });
        let mut found: Vec<usize> = Vec::new();
        for extent in near.chain(self.types).flat_map(|t| t.shape.iter().copied()) {
            if found.len() < MAX_TRIALS / 4 && !found.contains(&extent) {
                found.push(extent);
            }
        }
        found
    }

    /// Tries another number of axes.
    fn other_rank(&self, input: usize, got: &[usize]) -> Option<Remedy> {
        let fitting = |dims: &[Option<usize>]| {
            let shape = PartialShape::from_dims(dims.iter().copied());
            self.consistent(&[(input, self.with_shape(input, shape))]).is_some()
        };
        let ranks: Vec<usize> = (1..=5).filter(|rank| fitting(&vec![None; *rank])).collect();
        if ranks.contains(&got.len()) {
            return None;
        }
        let mut dims = vec![None; *ranks.first()?];
        for axis in 1..dims.len() {
            let with = |extent: usize| {
                let mut tried = dims.clone();
                tried[axis] = Some(extent);
                tried
            };
            if !fitting(&with(UNUSUAL)) {
                dims[axis] = self.candidates().into_iter().find(|extent| fitting(&with(*extent)));
            }
        }
        let listed: Vec<String> = ranks.iter().map(usize::to_string).collect();
        let noun = if ranks == [1] { "axis" } else { "axes" };
        let like = PartialShape::from_dims(dims);
        let advice = format!("pass x.reshape to a shape like {like}");
        Some(Remedy { wanted: format!("{} {noun}", listed.join(" or ")), advice })
    }
}

fn remedy(wanted: &[usize], advice: String) -> Remedy {
    Remedy { wanted: Shape::new(wanted).to_string(), advice }
}
