//! `_blocked_convolution`: a two-dimensional convolution, and what is fused behind it, on blocked operands.

use super::{infer_from_layout, shape_of};
use crate::core::*;
use crate::graph::{INPUTS, epilogue, with_epilogue};
use crate::nn::convolution::{ALL_ATTRS, Geometry};
use crate::nn::convolution_kernel::{Epilogue, cost_ns, describe, fast_kernel, multiply_adds, operand, unpacker};
use mxrt_engine::OpError;
use mxrt_kernels::conv_fast::{Blocked, BlockedMut, BlockedShape, ConvEpilogue, ConvKernel, Residual};
use mxrt_tensor::{DType, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_convolution",
    doc: "Convolution, then the addition of a residual, then an activation, on blocked data.",
    inputs: INPUTS,
    attrs: ATTRS,
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    ..OpDef::BASE
}];

static ATTRS: &[AttrDef] = &with_epilogue::<13, 17>(with_layouts(ALL_ATTRS));

const fn with_layouts(layer: [AttrDef; 11]) -> [AttrDef; 13] {
    let mut all = [LAYOUTS; 13];
    let mut i = 0;
    while i < layer.len() {
        all[i] = layer[i];
        i += 1;
    }
    all[12] = OUT_LAYOUT;
    all
}

/// The offer of a convolution to work blocked.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>, epilogue: Epilogue) -> Option<BlockedForm> {
    let data = signature.inputs.first()?;
    if data.dtype != DType::F32 || data.shape.len() != 4 {
        return None;
    }
    let kernel = fast_kernel(&Geometry::new(attrs).ok()?, &data.shape, signature.options)?;
    let output = Layout::Blocked(BlockedLayout::of(kernel.output_shape()));
    let mut inputs = vec![Layout::Plain; signature.inputs.len()];
    *inputs.first_mut()? = Layout::Blocked(BlockedLayout::of(kernel.input_shape()));
    if let Some(at) = epilogue.residual_at() {
        *inputs.get_mut(at)? = output;
    }
    Some(BlockedForm { op: "_blocked_convolution", inputs, output, starts: true })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (inputs, output) = layouts(attrs)?;
    let epilogue = epilogue(attrs);
    let x = shape_of(inputs.first(), signature)?;
    let residual = epilogue.residual_at().map(|at| shape_of(inputs.get(at), signature)).transpose()?;
    let y = shape_of(Some(&output), signature)?;
    let geometry = Geometry::new(attrs)?;
    let kernel = fast_kernel(&geometry, &[x.n, x.c, x.h, x.w], signature.options)
        .ok_or_else(|| not_implemented("this convolution has no kernel on blocked data"))?;
    let work = multiply_adds(&geometry, &[x.n, x.c], y.n * y.c * y.h * y.w);
    Ok(Box::new(BlockedConvolution { kernel, epilogue, x, residual, y, work }))
}

struct BlockedConvolution {
    kernel: ConvKernel,
    epilogue: Epilogue,
    x: BlockedShape,
    residual: Option<BlockedShape>,
    y: BlockedShape,
    work: u64,
}

impl Kernel for BlockedConvolution {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let residual = match (self.residual, operand::<f32>(call.inputs, self.epilogue.residual_at())?) {
            (Some(shape), Some(data)) => Residual::Add(Blocked::new(shape, data)),
            _ => Residual::None,
        };
        let epilogue = ConvEpilogue {
            bias: operand(call.inputs, self.epilogue.bias.then_some(2))?,
            residual,
            activation: self.epilogue.activation.fast(),
        };
        let x = Blocked::new(self.x, data.as_slice()?);
        let packed = packed_elements(packed, self.kernel.packed_len())?;
        let scratch = scratch(call.workspace, self.kernel.scratch_len())?;
        let mut y = BlockedMut::new(self.y, out.as_mut_slice()?);
        self.kernel.run(x, packed, epilogue, &mut y, scratch, call.par);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.kernel.scratch_len() * size_of::<f32>()
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        describe(&self.kernel)
    }

    fn cost_ns(&self) -> u64 {
        cost_ns(&self.kernel, self.work)
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.work)
    }

    fn convolution(&self) -> Option<ConvSignature> {
        Some(self.kernel.signature())
    }
}

impl Packing for BlockedConvolution {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.kernel.packed_len() * size_of::<f32>()
    }

    fn pack(&self, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        self.kernel.pack(elements(weight)?, scratch(out, self.kernel.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        format!("{} {:?}", self.kernel.name(), self.kernel.params())
    }

    fn unpacker(&self) -> Option<Box<dyn Unpack>> {
        unpacker(&self.kernel)
    }
}
