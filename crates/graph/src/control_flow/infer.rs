//! Types around a control-flow node, through its graphs.

use super::wiring::{FlowKind, Wiring};
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{DType, PartialShape};

/// Graphs through which types are inferred; what is found out about their inputs and outputs is
/// added to what is known.
pub(crate) trait InnerGraphs {
    fn infer_shapes(
        &self,
        graph: usize,
        inputs: &mut [PartialShape],
        outputs: &mut [PartialShape],
    ) -> Result<(), OpError>;

    fn infer_dtypes(
        &self,
        graph: usize,
        inputs: &mut [Option<DType>],
        outputs: &mut [Option<DType>],
    ) -> Result<(), OpError>;
}

/// One row of a shape; MXNet gives a row of a list of numbers the shape `(1,)`.
fn row_of(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        None | Some([]) => PartialShape::UNKNOWN,
        Some([_]) => PartialShape::from_dims([Some(1)]),
        Some([_, row @ ..]) => PartialShape::from_dims(row.iter().copied()),
    }
}

fn stack(rows: Option<usize>, row: &PartialShape) -> PartialShape {
    row.dims().map_or(PartialShape::UNKNOWN, |dims| PartialShape::from_dims([rows].into_iter().chain(dims.to_vec())))
}

fn learn_shape(what: &str, n: usize, have: &mut PartialShape, news: &PartialShape) -> Result<(), OpError> {
    let differs = |e| OpError::new(FailureKind::Shape, format!("{what} {n}: {e}"));
    have.merge(news).map(drop).map_err(differs)
}

fn learn_dtype(what: &str, n: usize, have: &mut Option<DType>, news: Option<DType>) -> Result<(), OpError> {
    match (*have, news) {
        (Some(a), Some(b)) if a != b => {
            Err(OpError::new(FailureKind::Type, format!("{what} {n} has dtype {a}, but also {b}")))
        }
        _ => {
            *have = have.or(news);
            Ok(())
        }
    }
}

const STATE: &str = "the shape and dtype of a state must not change in the loop: state";

impl Wiring {
    /// Adds what the graphs tell of the shapes of inputs and outputs.
    pub fn infer_shapes(
        &self,
        graphs: &dyn InnerGraphs,
        inputs: &mut [PartialShape],
        outputs: &mut [PartialShape],
    ) -> Result<(), OpError> {
        self.tie_shapes(inputs, outputs)?;
        for g in 0..self.inputs.len() {
            let view = |k: &usize| if *k < self.rows { row_of(&inputs[*k]) } else { inputs[*k].clone() };
            let mut ins: Vec<PartialShape> = self.inputs[g].iter().map(view).collect();
            let mut outs = match self.is_condition(g) {
                true => vec![PartialShape::UNKNOWN],
                false => outputs.to_vec(),
            };
            if !self.is_condition(g) {
                outs[..self.stacked].iter_mut().for_each(|out| *out = row_of(out));
            }
            graphs.infer_shapes(g, &mut ins, &mut outs)?;
            for (k, found) in self.inputs[g].iter().zip(&ins) {
                let news = match (*k < self.rows, inputs[*k].rank()) {
                    (false, _) => found.clone(),
                    // The row of a list of numbers, and of a column of them, is (1,).
                    (true, None) if found.rank() == Some(1) => PartialShape::UNKNOWN,
                    (true, Some(1)) => PartialShape::UNKNOWN,
                    (true, _) => stack(None, found),
                };
                learn_shape("input", *k, &mut inputs[*k], &news)?;
            }
            if self.is_condition(g) {
                check_condition(&outs[0])?;
                continue;
            }
            for (o, found) in outs.iter().enumerate() {
                let news = if o < self.stacked { stack(None, found) } else { found.clone() };
                let what = if self.states.is_empty() || o < self.stacked { "output" } else { STATE };
                learn_shape(what, o - if what == STATE { self.stacked } else { 0 }, &mut outputs[o], &news)?;
            }
        }
        self.tie_shapes(inputs, outputs)
    }

    /// States keep their shapes, and all that has rows has as many.
    fn tie_shapes(&self, inputs: &mut [PartialShape], outputs: &mut [PartialShape]) -> Result<(), OpError> {
        for (s, k) in self.states.iter().enumerate() {
            let out = &mut outputs[self.stacked + s];
            PartialShape::unify(&mut inputs[*k], out)
                .map_err(|e| OpError::new(FailureKind::Shape, format!("{STATE} {s}: {e}")))?;
        }
        let rows = match self.kind {
            FlowKind::WhileLoop { max_iterations } => Some(max_iterations),
            _ => inputs[..self.rows].iter().chain(&outputs[..self.stacked]).find_map(|shape| shape.dim(0)),
        };
        let stacks = inputs[..self.rows].iter_mut().chain(&mut outputs[..self.stacked]);
        for (n, shape) in stacks.enumerate().filter(|(_, shape)| shape.rank().is_some()) {
            let rank = shape.rank().unwrap_or(0);
            if rank == 0 {
                return Err(OpError::new(FailureKind::Shape, format!("array {n} has no axis to iterate over")));
            }
            let want = PartialShape::from_dims([rows].into_iter().chain((1..rank).map(|_| None)));
            learn_shape("all data must have as many rows: array", n, shape, &want)?;
        }
        Ok(())
    }

    /// Adds what the graphs tell of the dtypes of inputs and outputs.
    pub fn infer_dtypes(
        &self,
        graphs: &dyn InnerGraphs,
        inputs: &mut [Option<DType>],
        outputs: &mut [Option<DType>],
    ) -> Result<(), OpError> {
        self.tie_dtypes(inputs, outputs)?;
        for g in 0..self.inputs.len() {
            let mut ins: Vec<Option<DType>> = self.inputs[g].iter().map(|k| inputs[*k]).collect();
            let mut outs = if self.is_condition(g) { vec![None] } else { outputs.to_vec() };
            graphs.infer_dtypes(g, &mut ins, &mut outs)?;
            for (k, found) in self.inputs[g].iter().zip(ins) {
                learn_dtype("input", *k, &mut inputs[*k], found)?;
            }
            if !self.is_condition(g) {
                for (o, found) in outs.into_iter().enumerate() {
                    learn_dtype("output", o, &mut outputs[o], found)?;
                }
            }
        }
        self.tie_dtypes(inputs, outputs)
    }

    fn tie_dtypes(&self, inputs: &mut [Option<DType>], outputs: &mut [Option<DType>]) -> Result<(), OpError> {
        for (s, k) in self.states.iter().enumerate() {
            let out = &mut outputs[self.stacked + s];
            learn_dtype(STATE, s, &mut inputs[*k], *out)?;
            *out = inputs[*k];
        }
        Ok(())
    }
}

/// A condition is a single number.
fn check_condition(shape: &PartialShape) -> Result<(), OpError> {
    match shape.complete() {
        Some(shape) if shape.size() != 1 => {
            let message = format!("the condition must be a single number, but it has shape {shape}");
            Err(OpError::new(FailureKind::Shape, message))
        }
        _ => Ok(()),
    }
}
