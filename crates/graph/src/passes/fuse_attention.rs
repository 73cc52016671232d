//! Attention as one step: two products of matrices with a softmax between them. Heads are read and
//! written where layers store them.

use super::views::{MatrixPlaces, View, transposed};
use crate::ir::{Graph, GraphNode, Rewriter, Types, Value, ValueMap};
use mxrt_engine::OpError;
use mxrt_ops::{KernelForm, KernelOptions, MatrixSteps, Move, Signature, SumEpilogue, form_of};
use mxrt_tensor::{DType, TensorType};
use std::collections::HashMap;
use std::sync::Arc;

/// Operators between a product and what reads it that are looked through.
const MOST: usize = 8;

/// `softmax(scale * q k + mask) v` becomes one node, where no other node reads scores or weights.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    if !graph.nodes.iter().any(|node| node.op.name == "softmax") {
        return Ok(graph);
    }
    let finder = Finder { graph: &graph, types, options, uses: graph.uses(), readers: readers(&graph) };
    let found: HashMap<usize, (usize, Fused)> =
        (0..graph.nodes.len()).filter_map(|n| finder.attention(n).map(|fused| (fused.result.1, (n, fused)))).collect();
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        let Some((product, fused)) = found.get(&n) else {
            new.keep(n, node);
            continue;
        };
        let made = new.push(fused.node(&new, &graph.nodes[*product])?);
        new.replace(Value::Node(n, 0), Value::Node(made, 0));
    }
    super::without_dead(new.finish(&graph))
}

/// The node that reads each value, where there is one alone.
fn readers(graph: &Graph) -> ValueMap<usize> {
    let reads = graph.nodes.iter().enumerate().flat_map(|(n, node)| node.inputs.iter().map(move |v| (*v, n)));
    reads.collect()
}

struct Finder<'g> {
    graph: &'g Graph,
    types: &'g Types,
    options: KernelOptions,
    uses: ValueMap<usize>,
    readers: ValueMap<usize>,
}

/// A batch of products.
struct MatchedProduct {
    batch: [usize; 2],
    size: [usize; 3],
    operands: [MatrixSteps; 3],
    alpha: f64,
}

/// Scores before their softmax.
struct Scores {
    node: usize,
    product: MatchedProduct,
    scale: f64,
    mask: Option<View>,
}

/// Two products with a softmax between them.
struct MatchedAttention {
    scores: Scores,
    /// the product of the weights and the values
    sums: MatchedProduct,
    /// queries, keys and values
    reads: [Value; 3],
    lengths: Option<Value>,
}

/// Attention that was found.
struct Fused {
    batch: [usize; 2],
    /// queries, keys, depth, width
    size: [usize; 4],
    scale: f64,
    /// queries, keys, values, perhaps a mask
    operands: Vec<MatrixPlaces>,
    lengths: Option<Value>,
    /// Places of the result in the memory of the result of a node.
    result: (MatrixPlaces, usize),
    shape: Vec<usize>,
}

impl Finder<'_> {
    /// The form of a node.
    fn form(&self, n: usize) -> Option<KernelForm> {
        let node = &self.graph.nodes[n];
        if node.flow.is_some() {
            return None;
        }
        let type_of = |value| self.types.get(&value).cloned();
        let inputs: Vec<TensorType> = node.inputs.iter().map(|value| type_of(*value)).collect::<Option<_>>()?;
        let outputs: Vec<TensorType> =
            (0..node.op.num_outputs(&node.attrs)).map(|i| type_of(Value::Node(n, i))).collect::<Option<_>>()?;
        form_of(node.op, &node.attrs, &Signature { inputs: &inputs, outputs: &outputs, options: self.options }).ok()?
    }

    fn product(&self, n: usize) -> Option<MatchedProduct> {
        match self.form(n)? {
            KernelForm::Product { batch, size, operands, alpha, epilogue } => {
                let forward = operands.iter().flat_map(|o| o.steps).all(|step| step >= 0);
                (forward && epilogue == SumEpilogue::default()).then_some(MatchedProduct {
                    batch,
                    size,
                    operands,
                    alpha,
                })
            }
            _ => None,
        }
    }

    fn shape(&self, value: Value) -> Option<&[usize]> {
        self.types.get(&value).filter(|t| t.dtype == DType::F32).map(|t| &t.shape[..])
    }

    /// The node that makes a value which nothing else reads.
    fn only(&self, value: Value) -> Option<(usize, &GraphNode)> {
        self.graph.producer(value).filter(|_| self.uses.get(&value) == Some(&1))
    }

    /// The attention that ends with node `n`, with heads where layers store them, or where they are
    /// copied to.
    fn attention(&self, n: usize) -> Option<Fused> {
        let matched = self.products_around_softmax(n)?;
        [true, false].into_iter().find_map(|deep| self.fused(n, &matched, deep))
    }

    fn products_around_softmax(&self, n: usize) -> Option<MatchedAttention> {
        let node = &self.graph.nodes[n];
        let is_softmax = |value: &Value| self.only(*value).filter(|(_, node)| node.op.name == "softmax");
        let (softmax, weights) = node.inputs.iter().find_map(is_softmax)?;
        self.shape(Value::Node(n, 0))?;
        let sums = self.product(n).filter(|sums| sums.alpha == 1.0)?;
        let [left, right, _] = sums.operands;
        let [queries, _, keys] = sums.size;
        if node.inputs[left.array] != Value::Node(softmax, 0) || right.array == left.array {
            return None;
        }
        let KernelForm::Softmax { params, split, has_length } = self.form(softmax)? else { return None };
        if params.log || params.negate || params.temperature != 1.0 || split[1..] != [keys, 1] {
            return None;
        }
        let scores = self.scores(*weights.inputs.first()?)?;
        let made = &scores.product;
        let fits = made.batch == sums.batch && made.size[..2] == [queries, keys];
        // The sums read the scores where the products write them.
        if !fits || (made.operands[2].first, made.operands[2].steps) != (left.first, left.steps) {
            return None;
        }
        let reads = &self.graph.nodes[scores.node].inputs;
        let reads = [reads[made.operands[0].array], reads[made.operands[1].array], node.inputs[right.array]];
        Some(MatchedAttention { reads, sums, lengths: has_length.then(|| weights.inputs[1]), scores })
    }

    /// Attention as one node; with `deep` unset, on heads where they are copied to.
    fn fused(&self, n: usize, matched: &MatchedAttention, deep: bool) -> Option<Fused> {
        let MatchedAttention { scores, sums, reads: [q, k, v], lengths } = matched;
        let (made, [_, right, result], [queries, width, keys]) = (&scores.product, sums.operands, sums.size);
        let depth = made.size[2];
        let at = |view: &View, steps: MatrixSteps, rows: usize, columns: usize| {
            places(view, sums.batch, steps, [rows, columns])
        };
        let turned = |steps: MatrixSteps| {
            let [outer, inner, row, column] = steps.steps;
            MatrixSteps { steps: [outer, inner, column, row], ..steps }
        };
        let (q, q_scale) = self.view(*q, deep)?;
        let (k, k_scale) = self.view(*k, deep)?;
        let (v, v_scale) = self.view(*v, deep)?;
        let (out, end) = self.result(n, deep)?;
        let mut operands = vec![
            at(&q, made.operands[0], queries, depth)?,
            at(&k, turned(made.operands[1]), keys, depth)?,
            at(&v, right, keys, width)?,
        ];
        if let Some(mask) = &scores.mask {
            operands.push(at(mask, made.operands[2], queries, keys).filter(|at| keys == 1 || at.steps[1] == 1)?);
        }
        let out = at(&out, result, queries, width).filter(|at| width == 1 || at.steps[1] == 1)?;
        let batch = batch_of(operands.iter().chain([&out]), sums.batch);
        let fits = v_scale == 1.0 && operands.iter().chain([&out]).all(|at| at.batch_steps(batch).is_some());
        fits.then(|| Fused {
            batch,
            size: [queries, keys, depth, width],
            scale: scores.scale * q_scale * k_scale,
            operands,
            lengths: *lengths,
            shape: self.shape(Value::Node(end, 0)).unwrap_or_default().to_vec(),
            result: (out, end),
        })
    }

    /// The products that a softmax reads, with what is done to them before.
    fn scores(&self, mut value: Value) -> Option<Scores> {
        let (mut scale, mut mask) = (1.0, None);
        for _ in 0..MOST {
            self.shape(value)?;
            let (n, node) = self.only(value)?;
            let first = *node.inputs.first()?;
            match node.op.name {
                _ if self.is_copy(n) => value = first,
                "_mul_scalar" | "_div_scalar" => {
                    scale *= factor(node)?;
                    value = first;
                }
                "broadcast_add" | "elemwise_add" if mask.is_none() && scale == 1.0 => {
                    let shape = self.shape(value)?;
                    let &[a, b] = node.inputs.as_slice() else { return None };
                    let leads = |from: Value| self.shape(from) == Some(shape) && self.leads_to_product(from);
                    let (from, other) = if leads(a) { (a, b) } else { (b, a) };
                    mask = Some(View::broadcast(other, self.shape(other)?, shape)?);
                    if self.shape(from) != Some(shape) {
                        return None;
                    }
                    value = from;
                }
                _ => {
                    let product = self.product(n)?;
                    let scale = scale * product.alpha;
                    return scale.is_finite().then_some(Scores { node: n, product, scale, mask });
                }
            }
        }
        None
    }

    /// Whether a value is a product, perhaps scaled and reshaped.
    fn leads_to_product(&self, mut value: Value) -> bool {
        for _ in 0..MOST {
            let Some((n, node)) = self.only(value) else { return false };
            match node.op.name {
                "_mul_scalar" | "_div_scalar" => value = node.inputs[0],
                _ if self.is_copy(n) => value = node.inputs[0],
                _ => return self.product(n).is_some(),
            }
        }
        false
    }

    fn is_copy(&self, n: usize) -> bool {
        let node = &self.graph.nodes[n];
        (node.op.rewrites.is_identity)(&node.attrs) && node.op.num_outputs(&node.attrs) == 1
    }

    /// The only move of a node that fills its result.
    fn moved(&self, n: usize) -> Option<Move> {
        match self.form(n)? {
            KernelForm::Move { fill: None, mut moves } if moves.len() == 1 => {
                moves.pop().filter(|moved| (moved.input, moved.output) == (0, 0))
            }
            _ => None,
        }
    }

    /// A value in the memory of the value that it was made of by reshaping, transposing and
    /// slicing, and the factor that it was multiplied with; with `deep` unset, in its own.
    fn view(&self, value: Value, deep: bool) -> Option<(View, f64)> {
        let (mut source, mut moves, mut scale) = (value, Vec::new(), 1.0);
        for _ in 0..if deep { MOST } else { 0 } {
            let Some((n, node)) = self.graph.producer(source) else { break };
            if self.shape(source).is_none() {
                break;
            }
            if let Some(factor) = factor(node) {
                scale *= factor;
            } else if let Some(moved) = self.moved(n) {
                moves.push(moved);
            } else if !self.is_copy(n) {
                break;
            }
            source = node.inputs[0];
        }
        let whole = View::whole(source, self.shape(source)?);
        let view = moves.iter().rev().try_fold(whole, |view, moved| view.moved(moved))?;
        Some((view, scale))
    }

    /// The result of node `n` in the memory of the result of the last node that only moves it.
    fn result(&self, n: usize, deep: bool) -> Option<(View, usize)> {
        let own = (View::whole(Value::Node(n, 0), self.shape(Value::Node(n, 0))?), n);
        let (mut end, mut found) = (n, None);
        for _ in 0..if deep { MOST } else { 0 } {
            let value = Value::Node(end, 0);
            let Some(reader) = self.readers.get(&value).filter(|_| self.uses.get(&value) == Some(&1)) else { break };
            if !self.is_copy(*reader) {
                if found.is_some() {
                    break;
                }
                let Some(view) = self.moved(*reader).and_then(|moved| transposed(&moved, value)) else { break };
                found = Some(view);
            }
            end = *reader;
        }
        Some(found.map_or(own, |view| (view, end)))
    }
}

/// The number that an operator multiplies with, if that is all it does, and other than those that
/// make other sums.
fn factor(node: &GraphNode) -> Option<f64> {
    if !matches!(node.op.name, "_mul_scalar" | "_div_scalar") {
        return None;
    }
    let number = node.attrs.float("scalar");
    (number as f32).is_normal().then(|| if node.op.name == "_div_scalar" { 1.0 / number } else { number })
}

/// The extents of the batch as the first operand with two axes has them, or all of it as one axis.
fn batch_of<'a>(mut operands: impl Iterator<Item = &'a MatrixPlaces>, batch: [usize; 2]) -> [usize; 2] {
    let found = operands.find_map(|at| match at.batch[..] {
        [[outer, _], [inner, _]] => Some([outer, inner]),
        _ => None,
    });
    found.unwrap_or([1, batch.iter().product()])
}

/// Matrices of a form in the memory of what the array is a view of.
fn places(view: &View, batch: [usize; 2], at: MatrixSteps, [rows, columns]: [usize; 2]) -> Option<MatrixPlaces> {
    let [outer, inner, row, column] = at.steps.map(|step| step as usize);
    let axes = [[batch[0], outer], [batch[1], inner]];
    view.matrices(at.first, &axes, [[rows, row], [columns, column]])
}

impl Fused {
    fn node(&self, new: &Rewriter, product: &GraphNode) -> Result<GraphNode, OpError> {
        let mut inputs: Vec<Value> = Vec::new();
        let mut attrs: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| attrs.push((name.to_owned(), value));
        set("batch", tuple(&self.batch));
        set("size", tuple(&self.size));
        set("scale", self.scale.to_string());
        for (name, at) in ["queries", "keys", "values", "mask"].iter().zip(&self.operands) {
            let source = new.value(at.source);
            let array = inputs.iter().position(|value| *value == source).unwrap_or(inputs.len());
            if array == inputs.len() {
                inputs.push(source);
            }
            set(name, tuple(&self.steps(array, at)));
        }
        set("result", tuple(&self.steps(0, &self.result.0)));
        if let Some(lengths) = self.lengths {
            set("lengths", inputs.len().to_string());
            inputs.push(new.value(lengths));
        }
        set("shape", tuple(&self.shape));
        set("num_args", inputs.len().to_string());
        Ok(GraphNode::new("_fused_attention", Arc::clone(&product.name), attrs, inputs)?.standing_for(product))
    }

    /// Number of the array, first element, steps between outer and inner batches, rows, columns.
    fn steps(&self, array: usize, at: &MatrixPlaces) -> [usize; 6] {
        let [outer, inner] = at.batch_steps(self.batch).unwrap_or_default();
        [array, at.first, outer, inner, at.steps[0], at.steps[1]]
    }
}

fn tuple(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("({},)", numbers.join(", "))
}
