//! `_contrib_DeformableConvolution`, `_contrib_ModulatedDeformableConvolution`: convolutions whose
//! taps are shifted by offsets that the network computes.

use super::image_dims;
use crate::nn::convolution::{ConvGeometry, infer_parameters};
use crate::prelude::*;
use mxrt_kernels::Float;
use mxrt_kernels::gemm::{Epilogue, Matrix, Sgemm};
use mxrt_kernels::gemm_plain::{Gemm, gemm};
use mxrt_kernels::par::Par;
use mxrt_kernels::vision::deformable::DeformableWindows;

const ATTRS: [AttrDef; 10] = [
    AttrDef::required("kernel", AttrKind::Shape, "Size: (height, width)."),
    AttrDef::new("stride", AttrKind::Shape, "()", "Distances between windows; 1 if not given."),
    AttrDef::new("dilate", AttrKind::Shape, "()", "Distances between taps; 1 if not given."),
    AttrDef::new("pad", AttrKind::Shape, "()", "Zeros on both sides; 0 if not given."),
    AttrDef::required("num_filter", AttrKind::IntFrom(1), "Number of output channels."),
    AttrDef::new("num_group", AttrKind::IntFrom(1), "1", "Number of groups of channels that do not see each other."),
    AttrDef::new("num_deformable_group", AttrKind::IntFrom(1), "1", "Number of groups of channels with own offsets."),
    AttrDef::new("workspace", AttrKind::IntFrom(0), "1024", "Without effect here.").wide().unsigned(),
    AttrDef::new("no_bias", AttrKind::Bool, "False", "Without the input bias."),
    AttrDef::new("layout", AttrKind::OptEnum(&["NCDHW", "NCHW", "NCW"]), "None", "Order of the axes."),
];

const MODULATED_ATTRS: [AttrDef; 11] = [
    ATTRS[0],
    ATTRS[1],
    ATTRS[2],
    ATTRS[3],
    ATTRS[4].unsigned(),
    ATTRS[5].unsigned(),
    ATTRS[6].unsigned(),
    ATTRS[7],
    ATTRS[8],
    AttrDef::new("im2col_step", AttrKind::IntFrom(1), "64", "Without effect here, but it must fit the batch.")
        .unsigned(),
    ATTRS[9],
];

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_DeformableConvolution",
        doc: "A convolution whose taps are shifted by offsets.\n\n\
            data is (batch, channels, height, width), offset (batch, 2 * num_deformable_group * \
            taps, rows, columns) with the shift down before the shift to the right of every tap, \
            weight (num_filter, channels / num_group, kernel...), bias (num_filter,). Dai et al., \
            \"Deformable Convolutional Networks\" (2017).",
        inputs: Inputs::ByAttrs(|attrs| {
            if attrs.bool("no_bias") { &["data", "offset", "weight"] } else { &["data", "offset", "weight", "bias"] }
        }),
        attrs: &ATTRS,
        infer_shape: |shapes| infer_shape(shapes, false),
        infer_dtype: |dtypes| dtypes.uniform(&["data", "offset", "weight", "bias"]),
        bind: |attrs, signature| bind(attrs, signature, false),
        form: |attrs, signature| form(attrs, signature, false),
        rewrites: &Rewrites {
            row_wise: |_, _, divided| divided.iter().enumerate().all(|(i, d)| *d == (i < 2)),
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_ModulatedDeformableConvolution",
        doc: "A convolution whose taps are shifted by offsets and scaled by a mask.\n\n\
            As _contrib_DeformableConvolution, with mask (batch, num_deformable_group * taps, \
            rows, columns) after offset. Zhu et al., \"Deformable ConvNets v2\" (2018).",
        inputs: Inputs::ByAttrs(|attrs| {
            if attrs.bool("no_bias") {
                &["data", "offset", "mask", "weight"]
            } else {
                &["data", "offset", "mask", "weight", "bias"]
            }
        }),
        attrs: &MODULATED_ATTRS,
        infer_shape: |shapes| infer_shape(shapes, true),
        infer_dtype: |dtypes| dtypes.uniform(&["data", "offset", "mask", "weight", "bias"]),
        bind: |attrs, signature| bind(attrs, signature, true),
        form: |attrs, signature| form(attrs, signature, true),
        // Parts of a batch have up to 16 images, which im2col_step must allow.
        rewrites: &Rewrites {
            row_wise: |attrs, _, divided| {
                attrs.count("im2col_step") >= 16 && divided.iter().enumerate().all(|(i, d)| *d == (i < 3))
            },
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
];

/// The attributes of a kernel with two extents, and the number of groups with offsets of their own.
fn geometry(attrs: &Attrs) -> Result<(ConvGeometry, usize), OpError> {
    let geometry = ConvGeometry::new(attrs)?;
    match geometry.kernel.len() {
        2 => Ok((geometry, attrs.count("num_deformable_group"))),
        n => Err(not_implemented(format!("kernel has {n} extents; deformable convolutions have 2: (height, width)"))),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>, modulated: bool) -> Result<(), OpError> {
    let (geometry, groups) = geometry(shapes.attrs)?;
    let Some([batch, channels, height, width]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    for (name, divisor) in [("num_group", geometry.groups), ("num_deformable_group", groups)] {
        if let Some(channels) = channels
            && !channels.is_multiple_of(divisor)
        {
            return Err(shape_error(format!("data has {channels} channels, which {name}={divisor} does not divide")));
        }
    }
    if modulated && let Some(batch) = batch {
        let step = shapes.attrs.count("im2col_step");
        if batch > step && !batch.is_multiple_of(step) {
            return Err(shape_error(format!("the batch of {batch} images must be a multiple of im2col_step={step}")));
        }
    }
    let weight = if modulated { 3 } else { 2 };
    infer_parameters(shapes, &geometry, channels, weight)?;
    let size = |axis: usize, n: Option<usize>| n.map(|n| geometry.size(axis, n)).transpose();
    let (rows, columns) = (size(0, height)?, size(1, width)?);
    let taps = checked_product(&[groups, geometry.kernel[0], geometry.kernel[1]])?;
    let shifts = checked_product(&[2, taps])?;
    shapes.set_input(1, "offset", PartialShape::from_dims([batch, Some(shifts), rows, columns]))?;
    if modulated {
        shapes.set_input(2, "mask", PartialShape::from_dims([batch, Some(taps), rows, columns]))?;
    }
    shapes.set_output(0, PartialShape::from_dims([batch, Some(geometry.filters), rows, columns]))
}

/// The windows over the images of a signature.
fn windows(geometry: &ConvGeometry, groups: usize, signature: &Signature<'_>) -> DeformableWindows {
    let (data, out) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    DeformableWindows {
        kernel: [geometry.kernel[0], geometry.kernel[1]],
        stride: [geometry.stride[0], geometry.stride[1]],
        dilate: [geometry.dilate[0], geometry.dilate[1]],
        pad: [geometry.pad[0], geometry.pad[1]],
        image: [data[2], data[3]],
        windows: [out[2], out[3]],
        groups,
    }
}

fn form(attrs: &Attrs, signature: &Signature<'_>, modulated: bool) -> MaybeForm {
    let (geometry, groups) = geometry(attrs)?;
    let windows = windows(&geometry, groups, signature);
    let form = KernelForm::DeformableConvolution { windows, groups: geometry.groups, modulated };
    for_floats(signature.inputs[0].dtype, form)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, modulated: bool) -> BoundKernel {
    if signature.inputs[0].dtype == DType::F16 {
        let bind: Bind = match modulated {
            true => |attrs, signature| bind(attrs, signature, true),
            false => |attrs, signature| bind(attrs, signature, false),
        };
        return bind_through_single(attrs, signature, bind);
    }
    let (geometry, groups) = geometry(attrs)?;
    let (data, out) = (&signature.inputs[0].shape, &signature.outputs[0].shape);
    let windows = windows(&geometry, groups, signature);
    let channels = data[1];
    let taps = windows.kernel[0] * windows.kernel[1];
    // The columns of one image must be countable; they are the workspace.
    let bytes = checked_product(&[channels, taps, out[2], out[3], signature.inputs[0].dtype.size()])?;
    let product = Gemm {
        batch: geometry.groups,
        ..Gemm::new(geometry.filters / geometry.groups, out[2] * out[3], channels / geometry.groups * taps)
    };
    let few_pixels = u32::try_from(data[2].saturating_mul(data[3])).is_ok();
    let single = signature.inputs[0].dtype == DType::F32 && product.k > 0 && few_pixels;
    let packed = single.then(|| Sgemm::new(product.m, product.n, product.k, signature.options.isa));
    let bytes = match packed {
        Some(packed) => checked_product(&[product.batch, packed.packed_len(), size_of::<f32>()])?,
        None => bytes,
    };
    let multiply_adds = (out.size() * channels / geometry.groups * taps) as u64;
    dispatch!(signature.inputs[0].dtype, wide, T => {
        let element = std::marker::PhantomData::<fn() -> T>;
        Ok(Box::new(Deformable { windows, product, packed, modulated, bytes, multiply_adds, element }))
    })
}

/// The columns of an image, multiplied by the filters.
struct Deformable<T> {
    windows: DeformableWindows,
    product: Gemm,
    /// The product of a group of channels, if the elements are of single precision.
    packed: Option<Sgemm>,
    modulated: bool,
    /// Bytes of the columns of one image.
    bytes: usize,
    multiply_adds: u64,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<T: Float> Deformable<T> {
    /// Multiplies columns in panels. Elements are of single precision.
    fn multiply(
        &self,
        par: &dyn Par,
        packed: Sgemm,
        operands: [&[T]; 3],
        mask: Option<&[T]>,
        columns: &mut [T],
        out: &mut [T],
    ) {
        let Gemm { batch, m, n, k, .. } = self.product;
        let [x, offset, weight] = operands.map(bytemuck::cast_slice::<T, f32>);
        let (mask, columns) = (mask.map(bytemuck::cast_slice), bytemuck::cast_slice_mut(columns));
        self.windows.gather_panels(par, packed.panel(), batch, x, offset, mask, columns);
        let out: &mut [f32] = bytemuck::cast_slice_mut(out);
        let parts = out.chunks_exact_mut(m * n).zip(columns.chunks_exact(packed.packed_len()));
        for ((out, columns), weight) in parts.zip(weight.chunks_exact(m * k)) {
            packed.run(Matrix::rows(weight, k), columns, Epilogue::default(), out, n, &mut [], par);
        }
    }
}

impl<T: Float> Kernel for Deformable<T> {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let ([data, offset, rest @ ..], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (mask, [weight, bias @ ..]) = (match (self.modulated, rest) {
            (true, [mask, rest @ ..]) => (Some(mask), rest),
            (false, rest) => (None, rest),
            _ => return Err(wrong_arity()),
        }) else {
            return Err(wrong_arity());
        };
        let batch = out.shape[0];
        let (x, offset, weight) = (elements::<T>(data)?, elements::<T>(offset)?, elements::<T>(weight)?);
        let mask = mask.map(elements::<T>).transpose()?;
        let bias = bias.first().map(elements::<T>).transpose()?;
        let columns = scratch::<T>(call.workspace, self.bytes / size_of::<T>())?;
        let out = elements_mut::<T>(out)?;
        if out.is_empty() {
            return Ok(());
        }
        let image = |all: &[T], i: usize| i * (all.len() / batch)..(i + 1) * (all.len() / batch);
        let plane = self.product.n;
        for (i, out) in out.chunks_exact_mut(self.product.batch * self.product.m * plane).enumerate() {
            let mask = mask.map(|mask| &mask[image(mask, i)]);
            let (x, offset) = (&x[image(x, i)], &offset[image(offset, i)]);
            match self.packed {
                Some(packed) => self.multiply(call.par, packed, [x, offset, weight], mask, columns, out),
                None => {
                    self.windows.gather(call.par, x, offset, mask, columns);
                    gemm(call.par, self.product, weight, columns, out);
                }
            }
            for (out, bias) in out.chunks_exact_mut(plane).zip(bias.unwrap_or(&[])) {
                out.iter_mut().for_each(|v| *v += *bias);
            }
        }
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.bytes
    }

    fn cost_ns(&self) -> u64 {
        1_000 + self.multiply_adds / 16
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.multiply_adds)
    }
}

#[cfg(test)]
mod tests;
