//! Convolutions whose taps are shifted: columns of `deformable.h`, multiplied by the filters.
//! Images are computed one after the other, so the columns of one are all the memory needed.

use crate::arguments::{CastArgument, DeformableColumnsArgument, FilterSumsArgument};
use crate::launch::{Bound, Computes, code, computes, each, launch, of_floats, small};
use crate::product::multiply_dense;
use mxrt_engine::{DeviceCtx, DevicePtr, OpError};
use mxrt_kernels::vision::deformable::DeformableWindows;
use mxrt_ops::{DeviceOperands, KernelForm, Signature};
use mxrt_tensor::DType;
use std::ffi::CStr;

/// Parts of the scratch memory begin at multiples of this.
const ALIGN: usize = 256;

/// A convolution bound to types.
struct Deformable {
    /// element type, and the type of columns and sums
    dtype: DType,
    sums: DType,
    images: usize,
    groups: usize,
    /// elements of an image of data, offsets, mask
    of_image: [usize; 3],
    /// filters of a group, windows, numbers of a filter
    size: [usize; 3],
    modulated: bool,
    columns: DeformableColumnsArgument,
    names: [&'static CStr; 2],
}

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::DeformableConvolution { windows, groups, modulated } = form else { return None };
    let ([data, offset, ..], [output]) = (signature.inputs, signature.outputs) else { return None };
    let dtype = data.dtype;
    let single = [c"deformable_columns_f32", c"filter_sums_f32"];
    let names = of_floats(dtype, [single, [c"deformable_columns_f64", c"filter_sums_f64"]])?;
    let sums = if computes(dtype)? == Computes::Double { DType::F64 } else { DType::F32 };
    let [images, filters, rows, columns] = output.shape[..] else { return None };
    let channels = data.shape[1];
    let taps = windows.kernel[0].checked_mul(windows.kernel[1])?;
    let plane = rows.checked_mul(columns)?;
    // Taps and windows are numbered in 32 bits.
    small([taps, plane])?;
    let n = channels.checked_mul(taps)?.checked_mul(plane)?;
    n.checked_mul(sums.size())?;
    let each_image = |elements: usize| elements.checked_div(images).unwrap_or(0);
    let deformable = Deformable {
        dtype,
        sums,
        images,
        groups: *groups,
        of_image: [
            each_image(data.shape.size()),
            each_image(offset.shape.size()),
            each_image(if *modulated { signature.inputs.get(2)?.shape.size() } else { 0 }),
        ],
        size: [filters / groups, plane, channels / groups * taps],
        modulated: *modulated,
        columns: columns_argument(windows, channels, n, code(dtype))?,
        names,
    };
    let empty = output.shape.size() == 0;
    Some(Bound::new(move |ctx, at| if empty { Ok(()) } else { deformable.enqueue(ctx, at) }))
}

/// The argument without addresses; `None` if a number does not fit.
fn columns_argument(
    windows: &DeformableWindows,
    channels: usize,
    n: usize,
    dtype: i32,
) -> Option<DeformableColumnsArgument> {
    Some(DeformableColumnsArgument {
        to: 0,
        from: 0,
        offsets: 0,
        mask: 0,
        n: n as i64,
        of_group: (channels / windows.groups).max(1) as i64,
        kernel: small(windows.kernel)?,
        step: small(windows.stride)?,
        dilate: small(windows.dilate)?,
        pad: small(windows.pad)?,
        size: small(windows.image)?,
        windows: small(windows.windows)?,
        dtype,
        unused: 0,
    })
}

impl Deformable {
    fn enqueue(&self, ctx: &DeviceCtx<'_>, at: &DeviceOperands<'_>) -> Result<(), OpError> {
        let [m, n, k] = self.size;
        let (filters, narrow) = (self.groups * m, self.dtype != self.sums);
        let bytes = |elements: usize| (elements * self.sums.size()).next_multiple_of(ALIGN);
        // Columns; for elements of half precision filters and sums, too.
        let parts =
            [self.columns.n as usize, if narrow { filters * k } else { 0 }, if narrow { filters * n } else { 0 }]
                .map(bytes);
        let memory = ctx.scratch(parts.iter().sum::<usize>().max(ALIGN))?;
        let (columns, wide) = (memory, memory.offset(parts[0]));
        let wide_sums = wide.offset(parts[1]);
        let parameters = &at.inputs[2 + usize::from(self.modulated)..];
        let (weight, bias) = (parameters[0], parameters.get(1).copied());
        if narrow && let Some(grid) = each(filters * k) {
            let (to_dtype, from_dtype) = (code(self.sums), code(self.dtype));
            let n = (filters * k) as i64;
            launch(ctx, c"cast", grid, &CastArgument { to: wide.0, from: weight.0, n, to_dtype, from_dtype })?;
        }
        let weight = if narrow { wide } else { weight };
        for image in 0..self.images {
            self.gather(ctx, at, image, columns)?;
            let result = at.outputs[0].offset(image * filters * n * self.dtype.size());
            let sums = if narrow { wide_sums } else { result };
            for group in 0..self.groups {
                let part = |array: DevicePtr, elements: usize| array.offset(group * elements * self.sums.size());
                let operands = [part(weight, m * k), part(columns, k * n), part(sums, m * n)];
                multiply_dense(ctx, self.sums, [m, n, k], operands)?;
            }
            if narrow || bias.is_some() {
                self.finish(ctx, result, sums, bias)?;
            }
        }
        Ok(())
    }

    /// Samples the columns of an image.
    fn gather(
        &self,
        ctx: &DeviceCtx<'_>,
        at: &DeviceOperands<'_>,
        image: usize,
        columns: DevicePtr,
    ) -> Result<(), OpError> {
        let Some(grid) = each(self.columns.n as usize) else { return Ok(()) };
        let of = |input: usize| at.inputs[input].offset(image * self.of_image[input] * self.dtype.size()).0;
        let mask = if self.modulated { of(2) } else { 0 };
        let argument = DeformableColumnsArgument { to: columns.0, from: of(0), offsets: of(1), mask, ..self.columns };
        launch(ctx, self.names[0], grid, &argument)
    }

    /// Adds the bias to the sums of an image, and stores them as elements.
    fn finish(
        &self,
        ctx: &DeviceCtx<'_>,
        to: DevicePtr,
        sums: DevicePtr,
        bias: Option<DevicePtr>,
    ) -> Result<(), OpError> {
        let n = self.groups * self.size[0] * self.size[1];
        let Some(grid) = each(n) else { return Ok(()) };
        let argument = FilterSumsArgument {
            to: to.0,
            sums: sums.0,
            bias: bias.map_or(0, |bias| bias.0),
            n: n as i64,
            windows: self.size[1] as i64,
            dtype: code(self.dtype),
            unused: 0,
        };
        launch(ctx, self.names[1], grid, &argument)
    }
}
