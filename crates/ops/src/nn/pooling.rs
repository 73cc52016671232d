//! `Pooling`: largest, mean, sum or p-norm of sliding windows.

use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::pool::{Convention, PoolKind, PoolParams, pool, pooled_size};
use mxrt_kernels::window::three;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Pooling",
    aliases: &["_npx_pooling"],
    doc: "The largest, mean, sum or p-norm of sliding windows over one, two or three spatial \
        axes.\n\n\
        pooling_convention says how many windows there are: valid rounds down, full rounds up, \
        same (1-d only) has one for every stride. The mean counts padding unless count_include_pad \
        is False.",
    attrs: &ATTRS,
    infer_shape,
    bind,
    form,
    // MXNet's oneDNN build has a workspace output for the positions of the largest values
    hidden_outputs: |attrs| {
        let channels_last = matches!(attrs.opt_str("layout"), Some("NDHWC" | "NHWC" | "NWC"));
        let axes = attrs.ints("kernel").len();
        usize::from(attrs.str("pool_type") == "max" && !channels_last && (1..=3).contains(&axes))
    },
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| blocked::pooling::form(attrs, signature),
        row_wise: rows_of_data,
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

pub(crate) const ATTRS: [AttrDef; 10] = [
    AttrDef::new("kernel", AttrKind::Shape, "()", "Window: (width,), (height, width) or (depth, height, width)."),
    AttrDef::new("pool_type", AttrKind::Enum(&["avg", "lp", "max", "sum"]), "max", "What is computed from a window."),
    AttrDef::new("global_pool", AttrKind::Bool, "False", "One window as large as the input; kernel is ignored."),
    AttrDef::new("cudnn_off", AttrKind::Bool, "False", "Without effect here."),
    AttrDef::new(
        "pooling_convention",
        AttrKind::Enum(&["full", "same", "valid"]),
        "valid",
        "How many windows there are.",
    ),
    AttrDef::new("stride", AttrKind::Shape, "()", "Distances between windows; 1 if not given."),
    AttrDef::new("pad", AttrKind::Shape, "()", "Padding on both sides; 0 if not given."),
    AttrDef::new("p_value", AttrKind::OptInt, "None", "Power of the lp type: 1, 2 or 3."),
    AttrDef::new("count_include_pad", AttrKind::OptBool, "None", "Whether padding counts in the mean."),
    AttrDef::new(
        "layout",
        AttrKind::OptEnum(&["NCDHW", "NCHW", "NCW", "NDHWC", "NHWC", "NWC"]),
        "None",
        "Order of the axes; channels first if not given.",
    ),
];

/// The attributes for an input of a known rank, checked.
pub(crate) struct PoolGeometry {
    pub kind: PoolKind,
    pub channels_last: bool,
    /// `None` for global pooling.
    pub windows: Option<PoolWindows>,
}

pub(crate) struct PoolWindows {
    pub kernel: Dims,
    pub stride: Dims,
    pub pad: Dims,
    convention: Convention,
}

impl PoolGeometry {
    pub fn new(attrs: &Attrs, rank: usize) -> Result<PoolGeometry, OpError> {
        if !(3..=5).contains(&rank) {
            return Err(shape_error(format!(
                "data has {rank} axes; expected 3, 4 or 5: batch, channels and one to three \
                 spatial axes"
            )));
        }
        // Pooling_v1 has neither a layout nor a way to count padding.
        let current = attrs.declares("layout");
        let channels_last = match if current { attrs.opt_str("layout") } else { None } {
            None => false,
            Some(layout) if layout.len() != rank => {
                return Err(shape_error(format!("layout {layout} does not fit data with {rank} axes")));
            }
            Some(layout) => layout.ends_with('C'),
        };
        let kind = match attrs.str("pool_type") {
            "max" => PoolKind::Max,
            "avg" => {
                PoolKind::Avg { count_include_pad: !current || attrs.opt_bool("count_include_pad").unwrap_or(true) }
            }
            "sum" => PoolKind::Sum,
            _ => PoolKind::Lp {
                p: match attrs.opt_int("p_value") {
                    Some(p @ 1..=3) => p as u32,
                    Some(p) => return Err(value_error(format!("p_value must be 1, 2 or 3, got {p}"))),
                    None => return Err(value_error("pool_type lp needs p_value: 1, 2 or 3")),
                },
            },
        };
        let windows = if attrs.bool("global_pool") { None } else { Some(PoolWindows::new(attrs, rank - 2)?) };
        Ok(PoolGeometry { kind, channels_last, windows })
    }

    /// The first spatial axis.
    fn first(&self) -> usize {
        if self.channels_last { 1 } else { 2 }
    }
}

impl PoolWindows {
    fn new(attrs: &Attrs, spatial: usize) -> Result<PoolWindows, OpError> {
        let list = |name: &str, default: usize| {
            let given = extents(name, attrs.ints(name))?;
            if given.is_empty() && name != "kernel" {
                return Ok(smallvec::smallvec![default; spatial]);
            }
            // MXNet reads as many as it needs, but for the kernel, which says how many axes there are.
            let unread = if name == "kernel" { 0 } else { given.len().saturating_sub(spatial) };
            let given: Dims = given[..given.len() - unread].into();
            if given.len() != spatial {
                let have = given.len();
                return Err(shape_error(format!(
                    "{name} has {have} entries but the input has {spatial} spatial axes (batch and \
                     channels not counted)"
                )));
            }
            Ok::<Dims, OpError>(given)
        };
        let windows = PoolWindows {
            kernel: list("kernel", 0)?,
            stride: list("stride", 1)?,
            pad: list("pad", 0)?,
            convention: match attrs.str("pooling_convention") {
                "full" => Convention::Full,
                "same" => Convention::Same,
                _ => Convention::Valid,
            },
        };
        if windows.kernel.contains(&0) || windows.stride.contains(&0) {
            return Err(value_error("kernel and stride must be positive"));
        }
        let padded = attrs.ints("pad").iter().any(|pad| *pad != 0);
        if windows.convention == Convention::Same && (spatial != 1 || padded) {
            return Err(value_error("pooling_convention same is for one spatial axis and no padding"));
        }
        if windows.kernel.iter().chain(&windows.pad).chain(&windows.stride).any(|v| *v > i32::MAX as usize) {
            return Err(value_error("kernel, stride or pad is too large"));
        }
        Ok(windows)
    }

    fn size(&self, axis: usize, n: usize) -> Result<usize, OpError> {
        let (kernel, pad) = (self.kernel[axis], self.pad[axis]);
        pooled_size(n, kernel, self.stride[axis], pad, self.convention)
            .ok_or_else(|| shape_error(format!("kernel size ({kernel}) exceeds input ({n} padded to {})", n + 2 * pad)))
    }
}

pub(crate) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let geometry = PoolGeometry::new(shapes.attrs, dims.len())?;
    let first = geometry.first();
    for axis in 0..dims.len() - 2 {
        let extent = &mut dims[first + axis];
        *extent = match &geometry.windows {
            None => Some(1),
            Some(windows) => extent.map(|n| windows.size(axis, n)).transpose()?,
        };
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The cost of windows, which are taken by rows of outputs, once for every row of the kernel. Sums
/// are finished in a separate pass, roots one by one.
fn cost_ns(kind: PoolKind, windows: &PoolWindows, channels_last: bool, signature: &Signature<'_>) -> u64 {
    let out = &signature.outputs[0].shape;
    let outputs = out.size() as u64;
    let row = if channels_last { out[out.len() - 2..].iter().product() } else { out[out.len() - 1] } as u64;
    let rows = if row < 4 { outputs } else { outputs / row };
    let (width, passes) = match &windows.kernel[..] {
        [outer @ .., width] => (*width as u64, outer.iter().map(|k| *k as u64).product::<u64>()),
        [] => (1, 1),
    };
    let tap_ps = match signature.options.isa {
        Isa::Portable => 400,
        Isa::Neon | Isa::Avx2 | Isa::Avx512 => 100,
    };
    let finish_ps = match kind {
        PoolKind::Max => 0,
        _ if channels_last => 100,
        PoolKind::Sum | PoolKind::Avg { .. } => 700,
        PoolKind::Lp { .. } => 10_000,
    };
    let taps = outputs.saturating_mul(width).saturating_mul(passes);
    let loops = rows.saturating_mul(passes).saturating_mul(15);
    500 + loops + taps.saturating_mul(tap_ps).saturating_add(outputs * finish_ps) / 1_000
}

/// The attributes, with the windows of global pooling.
pub(crate) fn pooling(attrs: &Attrs, signature: &Signature<'_>) -> Result<(PoolKind, bool, PoolWindows), OpError> {
    let shape = &signature.inputs[0].shape;
    let geometry = PoolGeometry::new(attrs, shape.len())?;
    let spatial = shape.len() - 2;
    let windows = geometry.windows.unwrap_or_else(|| PoolWindows {
        kernel: shape[if geometry.channels_last { 1 } else { 2 }..][..spatial].into(),
        stride: smallvec::smallvec![1; spatial],
        pad: smallvec::smallvec![0; spatial],
        convention: Convention::Valid,
    });
    Ok((geometry.kind, geometry.channels_last, windows))
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (kind, channels_last, windows) = pooling(attrs, signature)?;
    let form = KernelForm::Pooling {
        kind,
        kernel: three(&windows.kernel, 1),
        stride: three(&windows.stride, 1).map(|s| s.max(1)),
        pad: three(&windows.pad, 0),
        channels_last,
    };
    for_numeric(signature.inputs[0].dtype, form)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (kind, channels_last, windows) = pooling(attrs, signature)?;
    let cost = cost_ns(kind, &windows, channels_last, signature);
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(costed_kernel_fn("plain", cost, move |call| {
        let ([x], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let PoolWindows { kernel, stride, pad, .. } = &windows;
        let params = PoolParams { kind, kernel, stride, pad, channels_last };
        let out_shape = out.shape;
        pool(call.par, params, elements::<T>(x)?, x.shape, elements_mut(out)?, out_shape);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn pooled(attrs: &[(&str, &str)]) -> OpTest {
        let x: Vec<f32> = (0..16).map(|v| v as f32).collect();
        OpTest::new("Pooling").attrs(attrs).f32([1, 1, 4, 4], &x)
    }

    #[test]
    fn windows_are_reduced_by_type() {
        let two = [("kernel", "(2, 2)"), ("stride", "(2, 2)")];
        let of = |kind: &'static str| f32s(&pooled(&[two[0], two[1], ("pool_type", kind)]).run(), [1, 1, 2, 2]);
        assert_eq!(of("max"), [5.0, 7.0, 13.0, 15.0]);
        assert_eq!(of("avg"), [2.5, 4.5, 10.5, 12.5]);
        assert_eq!(of("sum"), [10.0, 18.0, 42.0, 50.0]);
    }

    #[test]
    fn padding_counts_in_the_mean_unless_told_otherwise() {
        let corner = |include: &str| {
            let attrs = [("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("pool_type", "avg"), ("count_include_pad", include)];
            f32s(&pooled(&attrs).run(), [1, 1, 4, 4])[0]
        };
        assert_close(&[corner("True"), corner("False")], &[10.0 / 9.0, 2.5]);
    }

    #[test]
    fn same_has_a_window_for_every_stride_however_long_the_padding_is() {
        let test = OpTest::new("Pooling").attr("kernel", "2").attr("stride", "2").attr("pad", "(0, 0)");
        let y = test.attr("pooling_convention", "same").f32([1, 1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]).run();
        assert_eq!(f32s(&y, [1, 1, 3]), [2.0, 4.0, 5.0]);
    }

    /// MXNet 1.9.1 reads none either; a longer kernel or a shorter padding is an error there.
    #[test]
    fn paddings_and_strides_beyond_the_axes_are_not_read() {
        let of = |attrs: &[(&str, &str)]| {
            let test = OpTest::new("Pooling").attr("kernel", "2").attrs(attrs);
            test.f32([1, 1, 4], &[1.0, 2.0, 3.0, 4.0])
        };
        assert_eq!(f32s(&of(&[("pad", "(1, 5)")]).run(), [1, 1, 5]), [1.0, 2.0, 3.0, 4.0, 4.0]);
        assert_eq!(f32s(&of(&[("stride", "(2, 7)"), ("pad", "(0, 0, 0)")]).run(), [1, 1, 2]), [2.0, 4.0]);
        let same = of(&[("pad", "(0, 3)"), ("pooling_convention", "same")]).error();
        assert!(same.message.contains("no padding"), "{}", same.message);
        assert!(pooled(&[("kernel", "(2, 2)"), ("pad", "1")]).error().message.contains("pad has 1 entries"));
    }

    #[test]
    fn a_global_pool_needs_no_kernel() {
        assert_eq!(f32s(&pooled(&[("global_pool", "1"), ("pool_type", "avg")]).run(), [1, 1, 1, 1]), [7.5]);
    }

    #[test]
    fn a_window_larger_than_the_input_is_an_error() {
        let error = pooled(&[("kernel", "(5, 5)")]).error();
        assert!(error.message.contains("kernel size (5) exceeds input (4"), "{}", error.message);
        pooled(&[("kernel", "(2,)")]).error();
        pooled(&[("kernel", "(2, 2)"), ("stride", "(0, 1)")]).error();
    }
}
