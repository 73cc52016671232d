//! `_blocked_convolution`: a two-dimensional convolution, and the steps fused after it, on blocked
//! operands.

use super::{in_lines, infer_from_layout, pooling, shape_of};
use crate::graph::{INPUTS, epilogue, with_epilogue};
use crate::nn::convolution::{ALL_ATTRS, ConvGeometry};
use crate::nn::convolution_kernel::{Epilogue, cost_ns, describe, fast_kernel, multiply_adds, operand, unpacker};
use crate::prelude::*;
use mxrt_kernels::blocked::{BLOCK, Blocked, BlockedMut, BlockedShape};
use mxrt_kernels::conv::{ConvEpilogue, ConvKernel, PooledKernel, Residual};
use mxrt_kernels::par::Par;
use mxrt_tensor::{TensorRef, TensorType};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_blocked_convolution",
    doc: "Convolution, then the addition of a residual, an activation or both, or an activation \
        and pooling, on blocked data.",
    inputs: INPUTS,
    attrs: ATTRS,
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    rewrites: &Rewrites { lines, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// The pooling after the activation, in the form of [`pooling::BlockedPoolWindows`]; empty if there
/// is none.
const POOLING: AttrDef =
    AttrDef::new("pooling", AttrKind::Shape, "()", "Kind, kernel, stride and padding of the pooling.");

static ATTRS: &[AttrDef] = &with_epilogue::<14, 19>(with_layouts(ALL_ATTRS));

const fn with_layouts(layer: [AttrDef; 11]) -> [AttrDef; 14] {
    let mut all = [LAYOUTS; 14];
    let mut i = 0;
    while i < layer.len() {
        all[i] = layer[i];
        i += 1;
    }
    all[12] = OUT_LAYOUT;
    all[13] = POOLING;
    all
}

/// The offer of a convolution to work blocked.
pub(crate) fn form(attrs: &Attrs, signature: &Signature<'_>, epilogue: Epilogue) -> Option<BlockedForm> {
    let data = signature.inputs.first()?;
    let axes = data.shape.len().checked_sub(2)?;
    if data.dtype != DType::F32 {
        return None;
    }
    let geometry = ConvGeometry::new(attrs).ok()?;
    let kernel = |in_blocks| fast_kernel(&geometry, &data.shape, signature.options, in_blocks);
    let input = |kernel: &ConvKernel| BlockedLayout::of(kernel.input_shape(), axes);
    let from_plain = kernel(false)?;
    // Few channels are read as planes only where they have to be converted anyway.
    let planes = input(&from_plain).block != BLOCK;
    let from_blocked = if planes { kernel(true).as_ref().map(input) } else { None };
    let output = Layout::Blocked(BlockedLayout::of(from_plain.output_shape(), axes));
    let mut inputs = vec![Layout::Plain; signature.inputs.len()];
    *inputs.first_mut()? = Layout::Blocked(input(&from_plain));
    if let Some(at) = epilogue.residual_at() {
        *inputs.get_mut(at)? = output;
    }
    Some(BlockedForm { op: "_blocked_convolution", inputs, from_blocked, output, starts: true })
}

/// The kernel for images of this layout.
fn kernel_for(geometry: &ConvGeometry, x: &BlockedShape, options: KernelOptions) -> Option<ConvKernel> {
    fast_kernel(geometry, &[x.n, x.c, x.h, x.w], options, x.block != 1)
}

/// The attributes of a blocked convolution that does the work of a blocked pooling of its output,
/// too; none where that does not pay. `data` is the type of its input.
pub fn with_pooling(
    conv: &Attrs,
    pool: &Attrs,
    data: &TensorType,
    options: KernelOptions,
) -> Option<[(String, String); 3]> {
    if epilogue(conv).residual || !conv.ints(POOLING.name).is_empty() {
        return None;
    }
    let (inputs, middle) = layouts(conv).ok()?;
    let (_, output) = layouts(pool).ok()?;
    let (middle, out) = (middle.blocked()?, output.blocked()?);
    let x = inputs.first()?.blocked()?.shape(*data.shape.first()?);
    let kernel = kernel_for(&ConvGeometry::new(conv).ok()?, &x, options)?;
    let windows = pooling::BlockedPoolWindows::new(pool, &middle).ok()??;
    windows.behind(&kernel, out.shape(x.n))?;
    let [inputs, output] = layout_attrs(&inputs, output);
    Some([inputs, output, (POOLING.name.to_owned(), windows.text())])
}

/// Returns which operands may be in lines: all images of a convolution whose kernel takes lines,
/// and the results of a pooling.
fn lines(attrs: &Attrs, signature: &Signature<'_>) -> Option<LinesForm> {
    let mut form = LinesForm { inputs: vec![Lines::Never; signature.inputs.len()], output: true, alike: false };
    if !attrs.ints(POOLING.name).is_empty() {
        return Some(form);
    }
    if signature.options.precision != Precision::Bf16 || !signature.options.has_tiles() {
        return None;
    }
    let (inputs, _) = layouts(attrs).ok()?;
    let x = shape_of(inputs.first(), signature).ok()?;
    if !kernel_for(&ConvGeometry::new(attrs).ok()?, &x, signature.options)?.takes_lines() {
        return None;
    }
    for at in std::iter::once(0).chain(epilogue(attrs).residual_at()) {
        *form.inputs.get_mut(at)? = Lines::Gains;
    }
    Some(form)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let missing = || not_implemented("this convolution has no kernel on blocked data");
    let (inputs, output) = layouts(attrs)?;
    let epilogue = epilogue(attrs);
    let x = shape_of(inputs.first(), signature)?;
    let residual = epilogue.residual_at().map(|at| shape_of(inputs.get(at), signature)).transpose()?;
    let y = shape_of(Some(&output), signature)?;
    let geometry = ConvGeometry::new(attrs)?;
    let kernel = kernel_for(&geometry, &x, signature.options).ok_or_else(missing)?;
    let sums = kernel.output_shape();
    let work = multiply_adds(&geometry, &[x.n, x.c], sums.n * sums.c * sums.h * sums.w);
    let pooled = match attrs.ints(POOLING.name) {
        [] => None,
        numbers => Some(pooling::BlockedPoolWindows::parse(numbers)?.behind(&kernel, y).ok_or_else(missing)?),
    };
    Ok(Box::new(BlockedConvolution { kernel, pooled, epilogue, x, residual, y, work }))
}

struct BlockedConvolution {
    kernel: ConvKernel,
    /// The kernel with a pooling after it.
    pooled: Option<PooledKernel>,
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
        let mut y = BlockedMut::new(self.y, out.as_mut_slice()?);
        match &self.pooled {
            Some(pooled) => pooled.run(x, packed, epilogue, &mut y, call.par),
            None => {
                let scratch = scratch(call.workspace, self.kernel.scratch_len())?;
                self.kernel.run(x, packed, epilogue, &mut y, scratch, call.par);
            }
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        if self.pooled.is_some() { 0 } else { self.kernel.scratch_len() * size_of::<f32>() }
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        let behind = self.pooled.as_ref().map(|pooled| format!(", {}", pooled.name()));
        describe(&self.kernel) + behind.as_deref().unwrap_or("") + in_lines(&self.x, &self.y)
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

    fn pack(&self, _: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        self.kernel.pack(elements(weight)?, scratch(out, self.kernel.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        self.kernel.packing()
    }

    fn unpacker(&self) -> Option<Box<dyn Unpack>> {
        unpacker(&self.kernel)
    }
}
