//! `_blocked_joined_convolutions`: a depthwise convolution and the 1x1 convolution that reads it, as one step.

use super::{infer_from_layout, shape_of};
use crate::core::*;
use crate::graph::epilogue;
use crate::graph::fused_convolution::ATTRS as CONVOLUTION;
use crate::graph::fused_elementwise::NUM_ARGS;
use crate::nn::convolution::Geometry;
use crate::nn::convolution_kernel::{Epilogue, cost_ns, fast_kernel, multiply_adds, operand};
use mxrt_engine::OpError;
use mxrt_kernels::conv_fast::{
    Blocked, BlockedMut, BlockedShape, ConvEpilogue, ConvKernel, FirstEpilogue, JoinedKernel, Residual,
};
use mxrt_tensor::TensorRef;

const NAME: &str = "_blocked_joined_convolutions";

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: NAME,
    doc: "A depthwise convolution, then a 1x1 convolution, each with its epilogue, on blocked data.\n\nInputs: data, weight and bias of the first, weight and bias of the second, residual.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg" },
    attrs: &[NUM_ARGS, FIRST, THEN, LAYOUTS, OUT_LAYOUT],
    infer_shape: |shapes| infer_from_layout(shapes),
    bind,
    internal: true,
    ..OpDef::BASE
}];

const FIRST: AttrDef = AttrDef::required("first", AttrKind::Str, "Attributes of the depthwise convolution.");
const THEN: AttrDef = AttrDef::required("then", AttrKind::Str, "Attributes of the 1x1 convolution.");

/// Stands between attributes inside an attribute.
const BETWEEN: &str = "; ";

/// A `_blocked_convolution` in a graph.
pub struct BlockedNode<'a> {
    /// its attributes as text
    pub text: &'a [(String, String)],
    /// its attributes
    pub attrs: &'a Attrs,
    /// types around it
    pub signature: Signature<'a>,
}

/// The operator and attributes of the node that computes `then(first(x))`, if that is one step and pays. It takes the inputs of
/// the first, then those of the second but its data.
pub fn join_convolutions(
    first: &BlockedNode<'_>,
    then: &BlockedNode<'_>,
) -> Option<(&'static str, Vec<(String, String)>)> {
    if epilogue(first.attrs).residual {
        return None;
    }
    let ((first_in, _), (then_in, output)) = (layouts(first.attrs).ok()?, layouts(then.attrs).ok()?);
    let (x, y) = (shape_of(first_in.first(), &first.signature).ok()?, shape_of(then_in.first(), &then.signature).ok()?);
    let kernel = |attrs: &Attrs, x: &BlockedShape| kernel_for(attrs, x, first.signature.options);
    JoinedKernel::join(&kernel(first.attrs, &x)?, &kernel(then.attrs, &y)?)?;
    let inputs: Vec<Layout> = first_in.iter().chain(then_in.iter().skip(1)).copied().collect();
    let mut attrs = vec![
        (NUM_ARGS.name.to_owned(), inputs.len().to_string()),
        (FIRST.name.to_owned(), inner_text(first.text)?),
        (THEN.name.to_owned(), inner_text(then.text)?),
    ];
    attrs.extend(layout_attrs(&inputs, output));
    Some((NAME, attrs))
}

/// The attributes of a layer as one text.
fn inner_text(attrs: &[(String, String)]) -> Option<String> {
    let own = attrs.iter().filter(|(k, _)| k != LAYOUTS.name && k != OUT_LAYOUT.name);
    let parts: Vec<String> = own.map(|(k, v)| format!("{k}={v}")).collect();
    (!parts.iter().any(|part| part.contains(BETWEEN))).then(|| parts.join(BETWEEN))
}

/// The attributes of a layer, from one text.
fn inner(attrs: &Attrs, which: &AttrDef) -> Result<Attrs, OpError> {
    let text = attrs.str(which.name);
    Attrs::parse(CONVOLUTION, text.split(BETWEEN).filter_map(|part| part.split_once('=')))
}

fn kernel_for(attrs: &Attrs, x: &BlockedShape, options: KernelOptions) -> Option<ConvKernel> {
    fast_kernel(&Geometry::new(attrs).ok()?, &[x.n, x.c, x.h, x.w], options)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let none = || not_implemented("these convolutions have no kernel that joins them");
    let (inputs, output) = layouts(attrs)?;
    let (first, then) = (inner(attrs, &FIRST)?, inner(attrs, &THEN)?);
    let (x, y) = (shape_of(inputs.first(), signature)?, shape_of(Some(&output), signature)?);
    let first_kernel = kernel_for(&first, &x, signature.options).ok_or_else(none)?;
    let map = first_kernel.output_shape();
    let then_kernel = kernel_for(&then, &map, signature.options).ok_or_else(none)?;
    let kernel = JoinedKernel::join(&first_kernel, &then_kernel).ok_or_else(none)?;
    let places = Places::of(&epilogue(&first), &epilogue(&then));
    if signature.inputs.len() != places.count || epilogue(&first).residual {
        return Err(wrong_arity());
    }
    let residual = places.residual.map(|at| shape_of(inputs.get(at), signature)).transpose()?;
    let elements = |s: &BlockedShape| s.n * s.c * s.h * s.w;
    let works = [
        multiply_adds(&Geometry::new(&first)?, &[x.n, x.c], elements(&map)),
        multiply_adds(&Geometry::new(&then)?, &[map.n, map.c], elements(&y)),
    ];
    Ok(Box::new(Joined { kernel, places, epilogues: [epilogue(&first), epilogue(&then)], x, residual, y, works }))
}

/// Where the operands stand among the inputs.
struct Places {
    first_bias: Option<usize>,
    weights: [usize; 2],
    bias: Option<usize>,
    residual: Option<usize>,
    count: usize,
}

impl Places {
    fn of(first: &Epilogue, then: &Epilogue) -> Places {
        let weight = 2 + usize::from(first.bias);
        let residual = weight + 1 + usize::from(then.bias);
        Places {
            first_bias: first.bias.then_some(2),
            weights: [1, weight],
            bias: then.bias.then_some(weight + 1),
            residual: then.residual.then_some(residual),
            count: residual + usize::from(then.residual),
        }
    }
}

struct Joined {
    kernel: JoinedKernel,
    places: Places,
    epilogues: [Epilogue; 2],
    x: BlockedShape,
    residual: Option<BlockedShape>,
    y: BlockedShape,
    works: [u64; 2],
}

impl Kernel for Joined {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let [first, then] = &self.epilogues;
        let residual = match (self.residual, operand::<f32>(call.inputs, self.places.residual)?) {
            (Some(shape), Some(data)) => Residual::Add(Blocked::new(shape, data)),
            _ => Residual::None,
        };
        let first =
            FirstEpilogue { bias: operand(call.inputs, self.places.first_bias)?, activation: first.activation.fast() };
        let then = ConvEpilogue {
            bias: operand(call.inputs, self.places.bias)?,
            residual,
            activation: then.activation.fast(),
        };
        let x = Blocked::new(self.x, data.as_slice()?);
        let packed = packed_elements(packed, self.kernel.packed_len())?;
        let mut y = BlockedMut::new(self.y, out.as_mut_slice()?);
        self.kernel.run(x, packed, first, then, &mut y, call.par);
        Ok(())
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        let tuned = self.kernel.parts().iter().any(|part| part.is_tuned());
        format!("{}{}", self.kernel.name(), if tuned { " (tuned)" } else { "" })
    }

    fn cost_ns(&self) -> u64 {
        self.kernel.parts().iter().zip(self.works).map(|(part, work)| cost_ns(part, work)).sum()
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.works.iter().sum())
    }

    fn convolutions(&self) -> Vec<ConvSignature> {
        self.kernel.parts().iter().map(|part| part.signature()).collect()
    }
}

impl Packing for Joined {
    fn inputs(&self) -> &[usize] {
        &self.places.weights
    }

    fn bytes(&self) -> usize {
        self.kernel.packed_len() * size_of::<f32>()
    }

    fn pack(&self, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [first, then] = inputs else { return Err(wrong_arity()) };
        self.kernel.pack(elements(first)?, elements(then)?, scratch(out, self.kernel.packed_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        let [first, then] = self.kernel.parts().map(|part| format!("{} {:?}", part.name(), part.params()));
        format!("{first} + {then}")
    }
}
