//! `Convolution`: one, two or three spatial axes, groups, dilation.

use super::convolution_kernel::{Epilogue, bind_convolution, convolution_form};
use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::conv_plain::conv_size;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Convolution",
    aliases: &["Convolution_v1", "_npx_convolution"],
    doc: "Cross-correlation of data with num_filter filters over one, two or three spatial \
        axes.\n\n\
        data is (batch, channels, spatial...), weight (num_filter, channels / num_group, \
        kernel...), bias (num_filter,).",
    inputs: Inputs::ByAttrs(
        |attrs| {
            if attrs.bool("no_bias") { &["data", "weight"] } else { &["data", "weight", "bias"] }
        },
    ),
    attrs: ATTRS,
    infer_shape: |shapes| infer_shape(shapes),
    infer_dtype: |dtypes| dtypes.uniform(&["data", "weight", "bias"]),
    bind: |attrs, signature| bind_convolution(attrs, signature, Epilogue::of_layer(attrs)),
    form: |attrs, _| convolution_form(attrs, Epilogue::of_layer(attrs)),
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| blocked::convolution::form(attrs, signature, Epilogue::of_layer(attrs)),
        row_wise: rows_of_data,
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

const ATTRS: &[AttrDef] = &ALL_ATTRS;

/// Attributes of a convolution; fused ones add theirs.
pub(crate) const ALL_ATTRS: [AttrDef; 11] = [
    AttrDef::required("kernel", AttrKind::Shape, "Size: (width,), (height, width) or (depth, height, width)."),
    AttrDef::new("stride", AttrKind::Shape, "()", "Distances between windows; 1 if not given."),
    AttrDef::new("dilate", AttrKind::Shape, "()", "Distances between taps; 1 if not given."),
    AttrDef::new("pad", AttrKind::Shape, "()", "Zeros on both sides; 0 if not given."),
    AttrDef::required("num_filter", AttrKind::IntFrom(0), "Number of output channels.").unsigned(),
    AttrDef::new("num_group", AttrKind::IntFrom(0), "1", "Number of groups of channels that do not see each other.")
        .unsigned(),
    AttrDef::new("workspace", AttrKind::IntFrom(0), "1024", "Without effect here.").wide().unsigned(),
    AttrDef::new("no_bias", AttrKind::Bool, "False", "Without the input bias."),
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
];

/// The attributes, checked and filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvGeometry {
    pub kernel: Dims,
    pub stride: Dims,
    pub pad: Dims,
    pub dilate: Dims,
    pub filters: usize,
    pub groups: usize,
}

/// An attribute with one entry for each spatial axis, or none at all.
pub(crate) fn spatial_list(attrs: &Attrs, name: &str, default: usize, spatial: usize) -> Result<Dims, OpError> {
    let given = extents(name, attrs.ints(name))?;
    match given.len() {
        0 => Ok(smallvec::smallvec![default; spatial]),
        n if n == spatial => Ok(given),
        n => Err(value_error(format!("{name} has {n} entries but kernel has {spatial}; they must be as many"))),
    }
}

impl ConvGeometry {
    pub fn new(attrs: &Attrs) -> Result<ConvGeometry, OpError> {
        let kernel = extents("kernel", attrs.ints("kernel"))?;
        let spatial = kernel.len();
        if !(1..=3).contains(&spatial) {
            return Err(value_error(format!(
                "kernel has {spatial} extents; convolutions have one to three spatial axes"
            )));
        }
        let list = |name: &str, default: usize| spatial_list(attrs, name, default, spatial);
        let (stride, dilate, pad) = (list("stride", 1)?, list("dilate", 1)?, list("pad", 0)?);
        if kernel.iter().chain(&stride).chain(&dilate).any(|v| *v == 0) {
            return Err(value_error("kernel, stride and dilate must be positive"));
        }
        if kernel.iter().chain(&stride).chain(&dilate).chain(&pad).any(|v| *v > i32::MAX as usize) {
            return Err(value_error("kernel, stride, dilate or pad is too large"));
        }
        let (filters, groups) = (attrs.count("num_filter"), attrs.count("num_group"));
        if filters == 0 || groups == 0 || filters % groups != 0 {
            return Err(value_error(format!(
                "num_filter={filters} must be positive and a multiple of num_group={groups}, which \
                 must be positive too"
            )));
        }
        match attrs.opt_str("layout") {
            None => {}
            Some(layout) if layout.len() != spatial + 2 => {
                return Err(value_error(format!("layout {layout} does not fit a kernel with {spatial} extents")));
            }
            Some(layout) if layout.ends_with('C') => {
                return Err(not_implemented(format!(
                    "layout {layout} is not supported on the CPU; transpose to channels first"
                )));
            }
            Some(_) => {}
        }
        Ok(ConvGeometry { kernel, stride, pad, dilate, filters, groups })
    }

    /// The extent of the input along a spatial axis, where that of the output tells it: without
    /// strides.
    fn size_before(&self, axis: usize, out: usize) -> Option<usize> {
        let covered = self.dilate[axis].checked_mul(self.kernel[axis] - 1)?;
        let padded = out.checked_add(covered).filter(|_| self.stride[axis] == 1)?;
        padded.checked_sub(2 * self.pad[axis]).filter(|n| *n > 0)
    }

    /// Extents of the output along the spatial axes; `None` where the kernel does not fit.
    pub fn size(&self, axis: usize, n: usize) -> Result<usize, OpError> {
        let (kernel, pad, dilate) = (self.kernel[axis], self.pad[axis], self.dilate[axis]);
        let checked = dilate.checked_mul(kernel).and(n.checked_add(2 * pad));
        checked.and_then(|_| conv_size(n, kernel, self.stride[axis], pad, dilate)).ok_or_else(|| {
            shape_error(format!(
                "kernel size exceeds input: the kernel covers {} along spatial axis {axis}, but \
                 the input has {n} + 2 * {pad} (padding)",
                dilate.saturating_mul(kernel - 1).saturating_add(1)
            ))
        })
    }
}

/// Infers input, weight, bias and output of a convolution; other inputs are left alone.
pub(crate) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let geometry = ConvGeometry::new(shapes.attrs)?;
    let (spatial, groups) = (geometry.kernel.len(), geometry.groups);
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    if dims.len() != spatial + 2 {
        return Err(shape_error(format!(
            "data has shape {} with {} axes, but a kernel of {spatial} extents needs {}: batch, \
             channels and {spatial} spatial axes",
            shapes.inputs[0],
            dims.len(),
            spatial + 2
        )));
    }
    infer_parameters(shapes, &geometry, dims[1], 1)?;
    if let Some(channels) = dims[1]
        && channels % groups != 0
    {
        return Err(shape_error(format!("data has {channels} channels, which num_group={groups} does not divide")));
    }
    let mut out = dims.clone();
    out[1] = Some(geometry.filters);
    for axis in 0..spatial {
        out[2 + axis] = dims[2 + axis].map(|n| geometry.size(axis, n)).transpose()?;
    }
    shapes.set_output(0, PartialShape::from_dims(out))?;
    // The batch size may follow from the result only.
    dims[0] = dims[0].or(shapes.outputs[0].dim(0));
    for axis in 0..spatial {
        dims[2 + axis] = dims[2 + axis].or_else(|| geometry.size_before(axis, shapes.outputs[0].dim(2 + axis)?));
    }
    shapes.set_input(0, "data", PartialShape::from_dims(dims))
}

/// Infers the weight, which is this input, and the bias after it.
pub(crate) fn infer_parameters(
    shapes: &mut Shapes<'_>,
    geometry: &ConvGeometry,
    channels: Option<usize>,
    index: usize,
) -> Result<(), OpError> {
    let (filters, groups) = (geometry.filters, geometry.groups);
    let mut weight = vec![Some(filters), channels.map(|c| c / groups)];
    weight.extend(geometry.kernel.iter().map(|k| Some(*k)));
    let (weight, have) = (PartialShape::from_dims(weight), shapes.inputs[index].clone());
    shapes.set_input(index, "weight", weight.clone()).map_err(|_| {
        let kernel = Shape::new(&geometry.kernel);
        shape_error(format!(
            "weight has shape {have} but input {} with num_filter={filters}, kernel={kernel} and \
             num_group={groups} needs {weight}",
            shapes.inputs[0]
        ))
    })?;
    if !shapes.attrs.bool("no_bias") {
        let have = shapes.inputs[index + 1].clone();
        shapes
            .set_input(index + 1, "bias", Shape::new(&[filters]))
            .map_err(|_| shape_error(format!("bias has shape {have} but num_filter={filters} needs ({filters},)")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OpTest, assert_close, f32s};

    fn convolution(attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("Convolution").attrs(attrs)
    }

    #[test]
    fn extents_that_only_the_output_knows_are_found() {
        let find = |attrs: &[(&str, &str)]| {
            let def = crate::registry().get("Convolution").expect("it is registered");
            let attrs = def.parse_attrs(attrs.iter().copied()).expect("the attributes are good");
            let mut inputs = vec![PartialShape::UNKNOWN; 3];
            inputs[0] = PartialShape::from_zero_unknown(&[0, 10, 0, 0]);
            let mut outputs = [PartialShape::from_zero_unknown(&[5, 21, 32, 30])];
            infer_shape(&mut Shapes { attrs: &attrs, inputs: &mut inputs, outputs: &mut outputs }).expect("it fits");
            inputs.swap_remove(0)
        };
        let layer = [("kernel", "(3, 3)"), ("num_filter", "21"), ("pad", "(1, 0)")];
        assert_eq!(find(&layer), PartialShape::from_zero_unknown(&[5, 10, 32, 32]));
        let strided = [layer[0], layer[1], ("stride", "(2, 1)")];
        assert_eq!(find(&strided), PartialShape::from_zero_unknown(&[5, 10, 0, 32]));
    }

    #[test]
    fn a_two_dimensional_convolution_slides_over_the_padded_image() {
        let x: Vec<f32> = (0..9).map(|v| v as f32).collect();
        let y = convolution(&[("kernel", "(2, 2)"), ("num_filter", "1"), ("pad", "(1, 0)"), ("stride", "(1, 2)")])
            .f32([1, 1, 3, 3], &x)
            .f32([1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])
            .f32([1], &[0.5])
            .run();
        assert_close(&f32s(&y, [1, 1, 4, 1]), &[4.5, 27.5, 57.5, 20.5]);
    }

    #[test]
    fn one_and_three_dimensional_and_grouped_ones_work_too() {
        let y = convolution(&[
            ("kernel", "2"),
            ("num_filter", "2"),
            ("num_group", "2"),
            ("no_bias", "True"),
            ("dilate", "2"),
        ])
        .f32([1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0])
        .f32([2, 1, 2], &[1.0, 1.0, 0.0, 1.0])
        .run();
        assert_close(&f32s(&y, [1, 2, 2]), &[4.0, 6.0, 30.0, 40.0]);
        let y = convolution(&[("kernel", "(1, 1, 2)"), ("num_filter", "1"), ("no_bias", "1")])
            .f32([1, 1, 1, 1, 3], &[1.0, 2.0, 3.0])
            .f32([1, 1, 1, 1, 2], &[1.0, -1.0])
            .run();
        assert_close(&f32s(&y, [1, 1, 1, 1, 2]), &[-1.0, -1.0]);
        let x = OpTest::new("Cast").attr("dtype", "float64").f32([1, 1, 1], &[3.0]).run();
        let w = OpTest::new("Cast").attr("dtype", "float64").f32([1, 1, 1], &[2.0]).run();
        let y = convolution(&[("kernel", "(1,)"), ("num_filter", "1"), ("no_bias", "1")]).array(x).array(w).run();
        assert_eq!(y.values::<f64>(), [6.0]);
    }

    #[test]
    fn what_does_not_fit_is_named_with_what_is_needed() {
        let message = |attrs: &[(&str, &str)], x: [usize; 4], w: [usize; 4]| {
            let zeros = |s: [usize; 4]| vec![0.0; s.iter().product()];
            convolution(attrs).attr("no_bias", "1").f32(x, &zeros(x)).f32(w, &zeros(w)).error().message.clone()
        };
        let three = [("kernel", "(3, 3)"), ("num_filter", "2")];
        let got = message(&three, [1, 3, 5, 5], [2, 4, 3, 3]);
        assert!(got.starts_with("weight has shape (2, 4, 3, 3) but input (1, 3, 5, 5)"), "{got}");
        assert!(got.ends_with("needs (2, 3, 3, 3)"), "{got}");
        assert!(message(&three, [1, 3, 2, 5], [2, 3, 3, 3]).contains("kernel size exceeds input"));
        let groups = [three[0], three[1], ("num_group", "2")];
        message(&groups, [1, 3, 5, 5], [2, 1, 3, 3]);
        for (key, value) in [("layout", "NHWC"), ("stride", "(0, 1)"), ("dilate", "(1,)"), ("num_group", "0")] {
            message(&[three[0], three[1], (key, value)], [1, 3, 5, 5], [2, 3, 3, 3]);
        }
    }
}
