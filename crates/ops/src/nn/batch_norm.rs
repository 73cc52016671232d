//! `BatchNorm` outside training: normalisation with moving statistics.

use crate::prelude::*;
use mxrt_kernels::elementwise::{Unary, unary_inplace};
use mxrt_kernels::norm::{Channels, batch_norm};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "BatchNorm",
        aliases: &["BatchNorm_v1", "_npx_batch_norm"],
        doc: "Normalises every channel with its moving mean and variance, then scales by gamma and \
            adds beta.",
        attrs: ATTRS,
        ..BATCH_NORM
    },
    OpDef {
        name: "_contrib_BatchNormWithReLU",
        doc: "BatchNorm, then relu.",
        attrs: ATTRS,
        bind: |attrs, signature| bind(attrs, signature, true),
        form: |attrs, signature| form(attrs, signature, true),
        ..BATCH_NORM
    },
    OpDef {
        name: "_contrib_SyncBatchNorm",
        doc: "BatchNorm that collects statistics over devices in training.",
        attrs: &[
            AttrDef::new("eps", AttrKind::Float, "0.00100000005", "Added to the variance."),
            AttrDef::new("momentum", AttrKind::Float, "0.899999976", "Of the moving statistics, in training."),
            AttrDef::new("fix_gamma", AttrKind::Bool, "True", "Take gamma as 1, whatever it holds."),
            AttrDef::new("use_global_stats", AttrKind::Bool, "False", "Use moving statistics in training too."),
            AttrDef::new("output_mean_var", AttrKind::Bool, "False", "Return mean and inverse deviation as well."),
            AttrDef::new("ndev", AttrKind::Int, "1", "For training."),
            AttrDef::required("key", AttrKind::Str, "For training."),
        ],
        ..BATCH_NORM
    },
];

const BATCH_NORM: OpDef = OpDef {
    inputs: Inputs::Fixed(&["data", "gamma", "beta", "moving_mean", "moving_var"]),
    aux: &[3, 4],
    outputs: Outputs::Named(
        |attrs| {
            if attrs.bool("output_mean_var") { &["output", "mean", "var"] } else { &["output"] }
        },
    ),
    hidden_outputs: |attrs| if attrs.bool("output_mean_var") { 0 } else { 2 },
    infer_shape,
    infer_dtype,
    bind: |attrs, signature| bind(attrs, signature, false),
    form: |attrs, signature| form(attrs, signature, false),
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            (!attrs.declares("axis") || is_within_rows(attrs.int("axis"), signature))
                && rows_of_data(attrs, signature, divided)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
};

/// The axis of channels, which may count from the last one.
fn named_axis(attrs: &Attrs) -> i64 {
    if attrs.declares("axis") { attrs.int("axis") } else { 1 }
}

pub(crate) const ATTRS: &[AttrDef] = &[
    AttrDef::new("eps", AttrKind::Float, "0.0010000000474974513", "Added to the variance.").wide(),
    AttrDef::new("momentum", AttrKind::Float, "0.899999976", "Of the moving statistics, in training."),
    AttrDef::new("fix_gamma", AttrKind::Bool, "True", "Take gamma as 1, whatever it holds."),
    AttrDef::new("use_global_stats", AttrKind::Bool, "False", "Use moving statistics in training too."),
    AttrDef::new("output_mean_var", AttrKind::Bool, "False", "Return mean and inverse deviation as well."),
    AttrDef::new("axis", AttrKind::Int, "1", "The axis of channels."),
    AttrDef::new("cudnn_off", AttrKind::Bool, "False", "Without effect here."),
    AttrDef::new("min_calib_range", AttrKind::OptFloat, "None", "Without effect here."),
    AttrDef::new("max_calib_range", AttrKind::OptFloat, "None", "Without effect here."),
];

const STATISTICS: [&str; 4] = ["gamma", "beta", "moving_mean", "moving_var"];

pub(crate) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let axis = resolve_axis(named_axis(shapes.attrs), dims.len())?;
    let channels = PartialShape::from_dims([dims[axis]]);
    for (i, name) in STATISTICS.iter().enumerate() {
        let have = shapes.inputs[i + 1].clone();
        shapes.set_input(i + 1, name, channels.clone()).map_err(|_| {
            shape_error(format!(
                "{name} has shape {have} but input {} with axis={axis} needs {channels}",
                shapes.inputs[0]
            ))
        })?;
    }
    for i in 1..shapes.outputs.len() {
        shapes.set_output(i, channels.clone())?;
    }
    Ok(())
}

/// Statistics of half-precision data are kept in single precision.
fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let Some(data) = dtypes.inputs[0].or(dtypes.outputs[0]) else { return Ok(()) };
    let statistics = if data == DType::F16 { DType::F32 } else { data };
    dtypes.set_input(0, "data", data)?;
    for (i, name) in STATISTICS.iter().enumerate() {
        dtypes.set_input(i + 1, name, statistics)?;
    }
    dtypes.set_output(0, data)?;
    for i in 1..dtypes.outputs.len() {
        dtypes.set_output(i, statistics)?;
    }
    Ok(())
}

fn form(attrs: &Attrs, signature: &Signature<'_>, relu: bool) -> MaybeForm {
    let data = &signature.inputs[0];
    let split = split_at(named_axis(attrs), &data.shape)?;
    let (eps, fix_gamma) = (attrs.float("eps"), attrs.bool("fix_gamma"));
    for_floats(data.dtype, KernelForm::BatchNorm { split, eps, fix_gamma, relu })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, relu: bool) -> BoundKernel {
    let split = split_at(named_axis(attrs), &signature.inputs[0].shape)?;
    let (eps, fix_gamma) = (attrs.float("eps"), attrs.bool("fix_gamma"));
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let [data, gamma, beta, mean, variance] = call.inputs else { return Err(wrong_arity()) };
        let statistic = elements::<<T as Element>::Acc>;
        let params = Channels {
            mean: statistic(mean)?,
            variance: statistic(variance)?,
            gamma: if fix_gamma { None } else { Some(statistic(gamma)?) },
            beta: statistic(beta)?,
            eps,
        };
        let Some((out, others)) = call.outputs.split_first_mut() else { return Err(wrong_arity()) };
        let out = elements_mut::<T>(out)?;
        batch_norm(call.par, elements(data)?, split, params, out);
        if relu {
            unary_inplace(call.par, Unary::Relu, out);
        }
        if let [mean_out, deviation_out] = others {
            mean_out.bytes_mut().copy_from_slice(mean.bytes());
            for (out, v) in elements_mut::<<T as Element>::Acc>(deviation_out)?.iter_mut().zip(params.variance) {
                *out = Element::from_f64(1.0 / (v.to_f64() + eps).sqrt());
            }
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    fn test() -> OpTest {
        let one = |test: OpTest, v: [f32; 2]| test.f32([2], &v);
        let data = OpTest::new("BatchNorm").attr("eps", "0").f32([1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        one(one(one(one(data, [5.0, 2.0]), [0.5, -1.0]), [1.0, 2.0]), [4.0, 0.25])
    }

    #[test]
    fn gamma_counts_only_when_it_is_not_fixed() {
        assert_close(&f32s(&test().run(), [1, 2, 2]), &[0.5, 1.0, 1.0, 3.0]);
        assert_close(&f32s(&test().attr("fix_gamma", "False").run(), [1, 2, 2]), &[0.5, 3.0, 3.0, 7.0]);
    }

    #[test]
    fn mean_and_inverse_deviation_are_given_on_request() {
        let y = test().attr("output_mean_var", "True").run_all();
        assert_eq!([f32s(&y[1], [2]), f32s(&y[2], [2])], [[1.0, 2.0], [0.5, 2.0]]);
    }

    #[test]
    fn a_statistic_of_the_wrong_size_is_named() {
        let error = OpTest::new("BatchNorm")
            .f32([1, 2, 2], &[0.0; 4])
            .f32([2], &[0.0; 2])
            .f32([2], &[0.0; 2])
            .f32([3], &[0.0; 3])
            .f32([2], &[0.0; 2])
            .error();
        assert!(error.message.contains("moving_mean has shape (3,)"), "{}", error.message);
    }
}
