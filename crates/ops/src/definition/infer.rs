//! Inference of shapes and element types.

use super::errors::{shape_error, type_error};
use super::{Attrs, OpDef};
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::{DType, PartialShape, Shape, TensorType, describe_inputs};
use smallvec::SmallVec;

/// Outputs that an operator can have: attributes give larger numbers only in damaged files.
pub const MAX_OUTPUTS: usize = 1 << 16;

/// The known shapes around one node; inference adds to them in both directions.
pub struct Shapes<'a> {
    /// parsed attributes
    pub attrs: &'a Attrs,
    /// shapes of the inputs
    pub inputs: &'a mut [PartialShape],
    /// shapes of the visible outputs
    pub outputs: &'a mut [PartialShape],
}

impl Shapes<'_> {
    /// All inputs and outputs have one shape.
    pub fn all_same(&mut self) -> Result<(), OpError> {
        let mut common = PartialShape::UNKNOWN;
        for shape in self.inputs.iter().chain(self.outputs.iter()) {
            common.merge(shape).map_err(|e| {
                let all: Vec<String> = self.inputs.iter().map(|s| s.to_string()).collect();
                shape_error(format!("all arrays must have one shape, got {} ({e})", all.join(", ")))
            })?;
        }
        for shape in self.inputs.iter_mut().chain(self.outputs.iter_mut()) {
            *shape = common.clone();
        }
        Ok(())
    }

    /// The complete shape of an input, if known.
    pub fn input(&self, index: usize) -> Option<Shape> {
        self.inputs.get(index).and_then(PartialShape::complete)
    }

    /// States what an input's shape is; an error names the input where it contradicts.
    pub fn set_input(&mut self, index: usize, name: &str, shape: impl Into<PartialShape>) -> Result<(), OpError> {
        let want = shape.into();
        let Some(have) = self.inputs.get_mut(index) else { return Ok(()) };
        have.merge(&want).map_err(|_| shape_error(format!("{name} has shape {have} but {want} is needed")))?;
        Ok(())
    }

    /// States what an output's shape is.
    pub fn set_output(&mut self, index: usize, shape: impl Into<PartialShape>) -> Result<(), OpError> {
        let want = shape.into();
        let Some(have) = self.outputs.get_mut(index) else { return Ok(()) };
        have.merge(&want)
            .map_err(|_| shape_error(format!("output {index} should have shape {have} but comes out as {want}")))?;
        Ok(())
    }
}

/// The known element types around one node.
pub struct DTypes<'a> {
    /// parsed attributes
    pub attrs: &'a Attrs,
    /// types of the inputs
    pub inputs: &'a mut [Option<DType>],
    /// types of the visible outputs
    pub outputs: &'a mut [Option<DType>],
}

impl DTypes<'_> {
    /// All inputs and outputs have one type.
    pub fn all_same(&mut self) -> Result<(), OpError> {
        let mut common = self.inputs.iter().flatten().next().copied();
        if self.inputs.iter().flatten().any(|dtype| Some(*dtype) != common) {
            let known = |dtype: &Option<DType>| dtype.map_or("unknown".to_owned(), |d| d.to_string());
            let have: Vec<String> = self.inputs.iter().map(known).collect();
            return Err(type_error(format!(
                "all inputs must have one dtype, but they have {}; cast some of them (data rather than \
                 parameters) with astype",
                have.join(", ")
            )));
        }
        for dtype in self.outputs.iter() {
            common = common.or(*dtype);
        }
        if let Some(dtype) = common {
            self.inputs.iter_mut().for_each(|d| *d = Some(dtype));
            for i in 0..self.outputs.len() {
                self.set_output(i, dtype)?;
            }
        }
        Ok(())
    }

    /// All inputs and outputs have one type, that of the first known; errors call the inputs by
    /// these names.
    pub fn uniform(&mut self, names: &[&str]) -> Result<(), OpError> {
        let common = self.inputs.iter().chain(self.outputs.iter()).find_map(|d| *d);
        let Some(dtype) = common else { return Ok(()) };
        for i in 0..self.inputs.len() {
            self.set_input(i, names.get(i).copied().unwrap_or("an input"), dtype)?;
        }
        (0..self.outputs.len()).try_for_each(|i| self.set_output(i, dtype))
    }

    /// States an input's type; an error names the input where it contradicts.
    pub fn set_input(&mut self, index: usize, name: &str, want: DType) -> Result<(), OpError> {
        match self.inputs.get_mut(index) {
            Some(Some(have)) if *have != want => {
                Err(type_error(format!("{name} has dtype {have} but {want} is needed; use astype('{want}')")))
            }
            Some(slot) => {
                *slot = Some(want);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// States an output's type.
    pub fn set_output(&mut self, index: usize, want: DType) -> Result<(), OpError> {
        match self.outputs.get_mut(index) {
            Some(Some(have)) if *have != want => {
                Err(type_error(format!("output {index} should have dtype {have} but comes out as {want}")))
            }
            Some(slot) => {
                *slot = Some(want);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Types of the outputs for complete inputs. Errors carry operator, shapes and dtypes.
pub fn infer_types(def: &OpDef, attrs: &Attrs, inputs: &[TensorType]) -> Result<SmallVec<[TensorType; 2]>, OpError> {
    infer_with_outputs(def, attrs, inputs, &[]).map_err(|e| describe_inputs(e.op(def.name), inputs.iter()))
}

/// Infers types if the caller has output arrays already (`out=`), whose types take part.
pub(crate) fn infer_with_outputs(
    def: &OpDef,
    attrs: &Attrs,
    inputs: &[TensorType],
    outputs: &[TensorType],
) -> Result<SmallVec<[TensorType; 2]>, OpError> {
    let known = outputs.iter().map(|t| (PartialShape::from(&t.shape), Some(t.dtype)));
    infer_outputs(def, attrs, inputs, known)?.complete()
}

/// Types of the outputs where their shapes are known, because the operator has looked at the
/// contents of its inputs.
pub(crate) fn infer_with_shapes(
    def: &OpDef,
    attrs: &Attrs,
    inputs: &[TensorType],
    shapes: &[Shape],
) -> Result<SmallVec<[TensorType; 2]>, OpError> {
    infer_outputs(def, attrs, inputs, shapes.iter().map(|shape| (PartialShape::from(shape), None)))?.complete()
}

/// Fails where the inputs of an operator do not fit, whatever is known of its outputs.
pub(crate) fn check_inputs(def: &OpDef, attrs: &Attrs, inputs: &[TensorType]) -> Result<(), OpError> {
    infer_outputs(def, attrs, inputs, std::iter::empty()).map(drop)
}

/// The known types around one node with complete inputs.
struct InferredOutputs {
    inputs: SmallVec<[PartialShape; 4]>,
    shapes: SmallVec<[PartialShape; 2]>,
    dtypes: SmallVec<[Option<DType>; 2]>,
}

fn infer_outputs(
    def: &OpDef,
    attrs: &Attrs,
    inputs: &[TensorType],
    known: impl Iterator<Item = (PartialShape, Option<DType>)>,
) -> Result<InferredOutputs, OpError> {
    let n = def.num_outputs(attrs);
    if n > MAX_OUTPUTS {
        let message = format!("{} would make {n} outputs; at most {MAX_OUTPUTS} are possible", def.name);
        return Err(OpError::new(FailureKind::Value, message));
    }
    let mut in_shapes: SmallVec<[PartialShape; 4]> = inputs.iter().map(|t| PartialShape::from(&t.shape)).collect();
    let mut in_dtypes: SmallVec<[Option<DType>; 4]> = inputs.iter().map(|t| Some(t.dtype)).collect();
    let (mut shapes, mut dtypes): (SmallVec<[PartialShape; 2]>, SmallVec<[Option<DType>; 2]>) = known.take(n).unzip();
    shapes.resize(n, PartialShape::UNKNOWN);
    dtypes.resize(n, None);
    (def.infer_shape)(&mut Shapes { attrs, inputs: &mut in_shapes, outputs: &mut shapes })?;
    (def.infer_dtype)(&mut DTypes { attrs, inputs: &mut in_dtypes, outputs: &mut dtypes })?;
    Ok(InferredOutputs { inputs: in_shapes, shapes, dtypes })
}

impl InferredOutputs {
    fn complete(self) -> Result<SmallVec<[TensorType; 2]>, OpError> {
        let types = self.shapes.iter().zip(&self.dtypes).map(|(shape, dtype)| match (shape.complete(), *dtype) {
            (Some(shape), Some(dtype)) => Ok(TensorType { dtype, shape }),
            (None, _) => Err(shape_error(format!(
                "the output shape cannot be told from the input shapes {}: only {shape} is known",
                self.inputs.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(", ")
            ))),
            (_, None) => Err(type_error("the output dtype cannot be told from the inputs; give dtype".to_owned())),
        });
        types.collect()
    }
}
