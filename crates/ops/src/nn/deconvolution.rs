//! `Deconvolution`: the transposed convolution.

use super::convolution::{ConvGeometry, spatial_list};
use super::convolution_kernel::operand;
use crate::execution::in_single;
use crate::prelude::*;
use mxrt_kernels::Float;
use mxrt_kernels::conv_plain::{ConvParams, deconvolution};
use mxrt_kernels::deconv::Deconv;
use mxrt_kernels::par::Par;
use mxrt_kernels::window::three;
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Deconvolution",
    aliases: &["_npx_deconvolution"],
    doc: "The transposed convolution: every input element spreads the filters over the output.\n\n\
        data is (batch, channels, spatial...), weight (channels, num_filter / num_group, \
        kernel...), bias (num_filter,). target_shape overrides pad and adj.",
    inputs: Inputs::ByAttrs(
        |attrs| {
            if attrs.bool("no_bias") { &["data", "weight"] } else { &["data", "weight", "bias"] }
        },
    ),
    attrs: &[
        AttrDef::required("kernel", AttrKind::Shape, "Size: (width,), (height, width) or (depth, height, width)."),
        AttrDef::new("stride", AttrKind::Shape, "()", "Distances between the spread filters; 1 if not given."),
        AttrDef::new("dilate", AttrKind::Shape, "()", "Distances between taps; 1 if not given."),
        AttrDef::new("pad", AttrKind::Shape, "()", "What is cut off on both sides; 0 if not given."),
        AttrDef::new("adj", AttrKind::Shape, "()", "What is added at the end; 0 if not given."),
        AttrDef::new("target_shape", AttrKind::Shape, "()", "Spatial extents of the output."),
        AttrDef::required("num_filter", AttrKind::IntFrom(0), "Number of output channels.").unsigned(),
        AttrDef::new(
            "num_group",
            AttrKind::IntFrom(0),
            "1",
            "Number of groups of channels that do not see each other.",
        )
        .unsigned(),
        AttrDef::new("workspace", AttrKind::IntFrom(0), "512", "Without effect here.").wide().unsigned(),
        AttrDef::new("no_bias", AttrKind::Bool, "True", "Without the input bias."),
        AttrDef::new(
            "cudnn_tune",
            AttrKind::OptEnum(&["fastest", "limited_workspace", "off"]),
            "None",
            "Without effect here.",
        ),
        AttrDef::new("cudnn_off", AttrKind::Bool, "False", "Without effect here."),
        AttrDef::new(
            "layout",
            AttrKind::OptEnum(&["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC"]),
            "None",
            "Order of the axes; only channels first works on the CPU.",
        ),
    ],
    infer_shape,
    infer_dtype: |dtypes| dtypes.uniform(&["data", "weight", "bias"]),
    bind,
    form,
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// Padding and extent of the output along one spatial axis with `n` elements.
fn size(attrs: &Attrs, geometry: &ConvGeometry, axis: usize, n: usize) -> Result<(usize, usize), OpError> {
    let spatial = geometry.kernel.len();
    let (adj, target) = (spatial_list(attrs, "adj", 0, spatial)?, spatial_list(attrs, "target_shape", 0, spatial)?);
    let too_large = || shape_error("the output is larger than the address space");
    let covered = geometry.dilate[axis]
        .checked_mul(geometry.kernel[axis] - 1)
        .and_then(|d| geometry.stride[axis].checked_mul(n.checked_sub(1)?)?.checked_add(d)?.checked_add(1));
    let covered = covered.ok_or_else(too_large)?;
    if target.iter().any(|t| *t != 0) {
        let cut = covered.checked_sub(target[axis]).ok_or_else(|| {
            shape_error(format!(
                "target_shape {} is too large: {covered} is all there is along spatial axis {axis}",
                target[axis]
            ))
        })?;
        return Ok((cut.div_ceil(2), target[axis]));
    }
    let (pad, adj) = (geometry.pad[axis], adj[axis]);
    if adj >= geometry.stride[axis].max(geometry.dilate[axis]) {
        return Err(value_error(format!("adj={adj} must be less than the stride {}", geometry.stride[axis])));
    }
    let total = covered.checked_add(adj).ok_or_else(too_large)?;
    match total.checked_sub(2 * pad) {
        Some(left) => Ok((pad, left)),
        None => Err(shape_error(format!("pad={pad} takes more than the {total} elements along spatial axis {axis}"))),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let geometry = ConvGeometry::new(shapes.attrs)?;
    let (spatial, groups, filters) = (geometry.kernel.len(), geometry.groups, geometry.filters);
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    if dims.len() != spatial + 2 {
        return Err(shape_error(format!(
            "data has shape {}, but a kernel of {spatial} extents needs {} axes",
            shapes.inputs[0],
            spatial + 2
        )));
    }
    if dims[1].is_some_and(|c| c % groups != 0) {
        return Err(shape_error(format!(
            "the channels of data {} are not divided by num_group={groups}",
            shapes.inputs[0]
        )));
    }
    let mut weight = vec![dims[1], Some(filters / groups)];
    weight.extend(geometry.kernel.iter().map(|k| Some(*k)));
    let (weight, have) = (PartialShape::from_dims(weight), shapes.inputs[1].clone());
    shapes.set_input(1, "weight", weight.clone()).map_err(|_| {
        shape_error(format!(
            "weight has shape {have} but input {} with num_filter={filters} and num_group={groups} \
             needs {weight}",
            shapes.inputs[0]
        ))
    })?;
    if !shapes.attrs.bool("no_bias") {
        shapes.set_input(2, "bias", Shape::new(&[filters]))?;
    }
    let mut out = dims.clone();
    out[1] = Some(filters);
    for axis in 0..spatial {
        let extent = dims[2 + axis].map(|n| size(shapes.attrs, &geometry, axis, n)).transpose()?;
        out[2 + axis] = extent.map(|(_, n)| n);
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// The geometry, with the padding that a target shape needs.
fn padded_geometry(attrs: &Attrs, signature: &Signature<'_>) -> Result<ConvGeometry, OpError> {
    let mut geometry = ConvGeometry::new(attrs)?;
    let shape = &signature.inputs[0].shape;
    for axis in 0..geometry.kernel.len() {
        geometry.pad[axis] = size(attrs, &geometry, axis, shape[2 + axis])?.0;
    }
    Ok(geometry)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (geometry, with_bias) = (padded_geometry(attrs, signature)?, !attrs.bool("no_bias"));
    in_single(signature, |signature| match signature.inputs[0].dtype {
        DType::F32 => match PackedDeconvolution::new(&geometry, with_bias, signature) {
            fast if fast.deconv.fits() => Ok(Box::new(fast)),
            _ => Ok(bind_typed::<f32>(geometry, with_bias, signature)),
        },
        DType::F64 => Ok(bind_typed::<f64>(geometry, with_bias, signature)),
        other => Err(unsupported_dtype(other, "float32, float64 and float16")),
    })
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let ConvGeometry { kernel, stride, pad, dilate, groups, .. } = padded_geometry(attrs, signature)?;
    let form = KernelForm::Deconvolution {
        kernel: three(&kernel, 1),
        stride: three(&stride, 1),
        pad: three(&pad, 0),
        dilate: three(&dilate, 1),
        groups,
        bias: (!attrs.bool("no_bias")).then_some(2),
    };
    for_floats(signature.inputs[0].dtype, form)
}

fn bind_typed<T: Float>(geometry: ConvGeometry, with_bias: bool, signature: &Signature<'_>) -> Box<dyn Kernel> {
    kernel_fn(signature, move |call| {
        let ([data, weight, rest @ ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let bias: Option<&TensorRef<'_>> = if with_bias { rest.first() } else { None };
        let bias = bias.map(elements::<T>).transpose()?;
        let ConvGeometry { kernel, stride, pad, dilate, groups, .. } = &geometry;
        let params = ConvParams { kernel, stride, pad, dilate, groups: *groups };
        let shape = out.shape;
        let (x, w) = (elements::<T>(data)?, elements::<T>(weight)?);
        deconvolution(call.par, params, x, data.shape, w, bias, elements_mut(out)?, shape);
        Ok(())
    })
}

/// A transposed convolution in single precision.
struct PackedDeconvolution {
    deconv: Deconv,
    with_bias: bool,
    work: u64,
    /// channels in and out, groups, extents of the kernel
    form: String,
}

impl PackedDeconvolution {
    fn new(geometry: &ConvGeometry, with_bias: bool, signature: &Signature<'_>) -> PackedDeconvolution {
        let ConvGeometry { kernel, stride, pad, dilate, groups, .. } = geometry;
        let params = ConvParams { kernel, stride, pad, dilate, groups: *groups };
        let (shape, out_shape) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
        let each = kernel.iter().fold(out_shape[1] / groups, |n, k| n.saturating_mul(*k));
        PackedDeconvolution {
            deconv: Deconv::new(params, shape, out_shape, signature.options.isa),
            with_bias,
            work: shape.size().saturating_mul(each) as u64,
            form: format!("deconvolution {} to {} in {groups}, {kernel:?}", shape[1], out_shape[1]),
        }
    }
}

impl Kernel for PackedDeconvolution {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, ..], [out], Some(packed)) = (call.inputs, &mut *call.outputs, call.packed) else {
            return Err(wrong_arity());
        };
        let bias = operand(call.inputs, self.with_bias.then_some(2))?;
        let packed = packed_elements(packed, self.deconv.weight_len())?;
        let workspace = scratch(call.workspace, self.deconv.workspace_len())?;
        self.deconv.run(elements(data)?, packed, bias, elements_mut(out)?, workspace, call.par);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.deconv.workspace_len() * size_of::<f32>()
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        "deconvolution by taps".to_owned()
    }

    fn cost_ns(&self) -> u64 {
        2_000 + self.work / 40
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.work)
    }
}

impl Packing for PackedDeconvolution {
    fn inputs(&self) -> &[usize] {
        &[1]
    }

    fn bytes(&self) -> usize {
        self.deconv.weight_len() * size_of::<f32>()
    }

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let [weight] = inputs else { return Err(wrong_arity()) };
        self.deconv.pack(par, elements(weight)?, scratch(out, self.deconv.weight_len())?);
        Ok(())
    }

    fn key(&self) -> String {
        self.form.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    #[test]
    fn filters_are_spread_with_the_stride() {
        let of = |attrs: &[(&str, &str)]| {
            OpTest::new("Deconvolution")
                .attr("kernel", "(2,)")
                .attr("num_filter", "1")
                .attrs(attrs)
                .f32([1, 1, 2], &[1.0, 10.0])
                .f32([1, 1, 2], &[1.0, 2.0])
        };
        assert_close(&f32s(&of(&[]).run(), [1, 1, 3]), &[1.0, 12.0, 20.0]);
        assert_close(&f32s(&of(&[("stride", "2"), ("adj", "1")]).run(), [1, 1, 5]), &[1.0, 2.0, 10.0, 20.0, 0.0]);
        assert_close(&f32s(&of(&[("stride", "2"), ("target_shape", "3")]).run(), [1, 1, 3]), &[2.0, 10.0, 20.0]);
        of(&[("target_shape", "9")]).error();
    }

    #[test]
    fn padding_may_leave_nothing() {
        let of = |pad: &str| {
            let test = OpTest::new("Deconvolution").attr("kernel", "(2, 2)").attr("num_filter", "2").attr("pad", pad);
            test.f32([1, 1, 1, 3], &[1.0; 3]).f32([1, 2, 2, 2], &[1.0; 8])
        };
        assert_eq!(of("(1, 0)").run().tensor.shape[..], [1, 2, 0, 4]);
        assert!(of("(2, 0)").error().message.contains("takes more than the 2 elements"));
    }

    #[test]
    fn channels_are_added_up_and_get_their_bias() {
        let x: Vec<f32> = (0..8).map(|v| v as f32).collect();
        let y = OpTest::new("Deconvolution")
            .attr("kernel", "(2, 1)")
            .attr("stride", "(2, 1)")
            .attr("num_filter", "2")
            .attr("no_bias", "False")
            .f32([1, 4, 1, 2], &x)
            .f32([4, 2, 2, 1], &[1.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
            .f32([2], &[0.5, 100.0])
            .run();
        assert_close(&f32s(&y, [1, 2, 2, 2]), &[12.5, 16.5, 0.5, 2.5, 106.0, 107.0, 106.0, 109.0]);
    }

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        let of = |kernel: &str, x: [usize; 3], weight: [usize; 3]| {
            let test = OpTest::new("Deconvolution").attr("kernel", kernel).attr("num_filter", "1");
            let ones = |shape: [usize; 3]| vec![1.0; shape.iter().product()];
            test.f16(x, &ones(x)).f16(weight, &ones(weight)).run()
        };
        assert_eq!(f16s(&of("(2,)", [1, 1, 2], [1, 1, 2]), [1, 1, 3]), [1.0, 2.0, 1.0]);
        assert_eq!(f16s(&of("(1,)", [1, 5000, 1], [5000, 1, 1]), [1, 1, 1]), [5000.0]);
    }
}
