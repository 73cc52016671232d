//! Calls of all operators, for tests that look at each.

#![allow(dead_code, reason = "no test uses everything")]

use mxrt_kernels::Par;
use mxrt_ops::{
    AttrDef, AttrKind, Attrs, DTypes, InnerValue, Inputs, Kernel, KernelCall, NESTED, NestedWriter, OpDef, RandomKey,
    Shapes, Signature, has_nested_graph, infer_types,
};
use mxrt_tensor::{DType, PartialShape, Shape, TensorMut, TensorRef, TensorType};

/// Calls what it is given: the code of the operator, without what is made for it.
pub type Around<'a> = &'a dyn Fn(&mut dyn FnMut());

/// Calls it, and nothing else.
pub fn plainly(go: &mut dyn FnMut()) {
    go();
}

/// A value for an attribute that has no default.
fn sample(attr: &AttrDef) -> String {
    match (attr.name, attr.kind) {
        ("kernel", _) => "(1, 1)".into(),
        ("pad_width", _) => "(0, 0, 0, 0, 1, 1, 1, 1)".into(),
        ("indices", _) => "(0, 1)".into(),
        ("pooled_size", AttrKind::Shape) => "(2, 2)".into(),
        ("output_size", AttrKind::Shape) => "(4, 4)".into(),
        // As many different numbers as the shape takes, at least.
        ("range_max", _) => "9".into(),
        ("alpha", AttrKind::Floats) => "(1, 2, 3)".into(),
        ("begin" | "end" | "axis" | "shape" | "reps", AttrKind::SparseShape | AttrKind::Shape) => "(1,)".into(),
        (_, AttrKind::Int | AttrKind::OptInt) => "1".into(),
        (_, AttrKind::IntFrom(least)) => least.max(1).to_string(),
        (_, AttrKind::Float | AttrKind::OptFloat) => "1".into(),
        (_, AttrKind::FloatIn(low, _)) => low.to_string(),
        (_, AttrKind::Bool | AttrKind::OptBool) => "True".into(),
        (_, AttrKind::Shape | AttrKind::OptShape | AttrKind::SparseShape | AttrKind::Floats | AttrKind::OptFloats) => {
            "(1,)".into()
        }
        (_, AttrKind::Enum(words) | AttrKind::OptEnum(words) | AttrKind::DType(words) | AttrKind::OptDType(words)) => {
            words[words.len() - 1].into()
        }
        (_, AttrKind::Str | AttrKind::Object(_)) => String::new(),
    }
}

/// The attributes of an operator with everything left at its default that has one, except those
/// given.
pub fn attrs(op: &OpDef, given: &[(&str, String)]) -> Attrs {
    let mut texts: Vec<(&str, String)> = given.to_vec();
    // Nothing but the attribute tells a shape where there are no inputs, and some operators need
    // one beside inputs.
    let shape = match op.name {
        "Reshape" => Some("(-1,)"),
        "broadcast_to" => Some("(0, 0)"),
        _ => matches!(op.inputs, Inputs::Fixed([])).then_some("(2, 3)"),
    };
    // What these make has a size that nothing else tells.
    if matches!(op.name, "GridGenerator" | "SpatialTransformer") {
        texts.push(("target_shape", "(3, 3)".to_owned()));
    }
    if op.name == "_npi_rot90" {
        texts.push(("axes", "(0, 1)".to_owned()));
    }
    if op.name == "_np_roll" {
        texts.push(("shift", "(1,)".to_owned()));
    }
    if op.name == "Crop" {
        texts.push(("h_w", "(1, 1)".to_owned()));
    }
    if op.name == "_image_resize" {
        texts.push(("size", "(3, 3)".to_owned()));
    }
    // It has no defaults that fit an image.
    if op.name == "_image_normalize" {
        texts.extend([("mean", "1".to_owned()), ("std", "2".to_owned())]);
    }
    // Without a calibrated range this one returns an error.
    if op.name == "_contrib_quantized_batch_norm" {
        texts.extend([("min_calib_range", "-1".to_owned()), ("max_calib_range", "1".to_owned())]);
    }
    if has_nested_graph(op) {
        texts.push((NESTED, nested_graph(op)));
    }
    for attr in op.attrs {
        let shape = shape.filter(|_| attr.name == "shape").map(str::to_owned);
        let missing = attr.default.is_none() || (attr.name == "shape" && attr.default == Some("None"));
        if matches!(attr.kind, AttrKind::Object(_)) {
            continue;
        }
        if let Some(text) = shape.or_else(|| missing.then(|| sample(attr)))
            && !texts.iter().any(|(k, _)| *k == attr.name)
        {
            texts.push((attr.name, text));
        }
    }
    op.parse_attrs(texts.iter().map(|(k, v)| (*k, v.as_str()))).unwrap_or_else(|e| panic!("{}: {}", op.name, e.message))
}

/// The nested graph of a fused operator: the layer alone.
fn nested_graph(op: &OpDef) -> String {
    let (layer, inputs, attrs): (_, usize, &[(&str, &str)]) = match op.name {
        "_sg_mkldnn_conv" => ("Convolution", 2, &[("kernel", "(1, 1)"), ("num_filter", "2"), ("no_bias", "True")]),
        "_sg_mkldnn_fully_connected" => ("FullyConnected", 2, &[("num_hidden", "3"), ("no_bias", "True")]),
        "_sg_mkldnn_selfatt_qk" => ("_contrib_interleaved_matmul_selfatt_qk", 1, &[("heads", "1")]),
        "_sg_mkldnn_selfatt_valatt" => ("_contrib_interleaved_matmul_selfatt_valatt", 2, &[("heads", "1")]),
        other => panic!("{other} needs a nested graph here"),
    };
    let values: Vec<InnerValue> = (0..inputs).map(InnerValue::Input).collect();
    let mut writer = NestedWriter::new(inputs, InnerValue::Node(0, 0));
    writer.node(layer, &values, attrs.iter().copied());
    writer.finish()
}

/// Every combination worth trying: the defaults, and each word and each truth value of one
/// attribute at a time.
pub fn variants(op: &OpDef) -> Vec<Attrs> {
    let mut all = vec![attrs(op, &[])];
    for attr in op.attrs {
        let words: Vec<String> = match attr.kind {
            AttrKind::Bool | AttrKind::OptBool => vec!["True".into(), "False".into()],
            AttrKind::Enum(words) | AttrKind::OptEnum(words) | AttrKind::DType(words) | AttrKind::OptDType(words) => {
                words.iter().map(|w| w.to_string()).collect()
            }
            AttrKind::OptInt | AttrKind::Int => vec!["0".into(), "-1".into(), "7".into()],
            _ => continue,
        };
        all.extend(words.into_iter().map(|word| attrs(op, &[(attr.name, word)])));
    }
    all
}

/// Shapes of the first input, and of others that do not follow from it.
pub fn shapes(op: &OpDef) -> Vec<Vec<Shape>> {
    let related: &[&[usize]] = match op.name {
        "_contrib_interleaved_matmul_selfatt_qk" | "_sg_mkldnn_selfatt_qk" => &[&[6, 1, 6]],
        "_contrib_interleaved_matmul_selfatt_valatt" | "_sg_mkldnn_selfatt_valatt" => &[&[6, 1, 6], &[1, 6, 6]],
        "_contrib_calibrate_entropy" => &[&[257], &[258]],
        "_contrib_intgemm_take_weight" => &[&[4, 2], &[3]],
        "_contrib_interleaved_matmul_encdec_qk" => &[&[5, 1, 2], &[6, 1, 4]],
        "_contrib_interleaved_matmul_encdec_valatt" => &[&[6, 1, 4], &[1, 5, 6]],
        "_linalg_gelqf" => &[&[2, 3, 4]],
        "khatri_rao" => &[&[2, 3]],
        "fill_element_0index" => &[&[2, 3], &[2], &[2]],
        "_onehot_encode" => &[&[2], &[2, 3]],
        "_npi_diag_indices_from" => &[&[3, 3]],
        "_npi_cholesky" | "_npi_eig" | "_npi_eigvals" | "_npi_eigh" | "_npi_eigvalsh" => &[&[2, 3, 3]],
        "_npi_solve" => &[&[3, 3], &[3]],
        "_npi_tensorsolve" => &[&[2, 3, 6], &[2, 3]],
        "_npi_tensorinv" => &[&[2, 3, 6]],
        "_npi_pinv" => &[&[2, 3], &[]],
        "_np_dot" | "_npi_matmul" => &[&[2, 3, 4], &[2, 4, 3]],
        "dot" | "batch_dot" | "_linalg_gemm2" => &[&[2, 3, 4], &[2, 4, 3]],
        "_linalg_gemm" => &[&[2, 3, 4], &[2, 4, 3], &[2, 3, 3]],
        "_linalg_potrf"
        | "_linalg_potri"
        | "_linalg_syevd"
        | "_linalg_inverse"
        | "_linalg_det"
        | "_linalg_slogdet"
        | "_linalg_sumlogdiag"
        | "_linalg_extractdiag"
        | "_linalg_extracttrian" => &[&[2, 3, 3]],
        "_linalg_trmm" | "_linalg_trsm" => &[&[2, 3, 3], &[2, 3, 3]],
        "_linalg_maketrian" => &[&[2, 6]],
        "BilinearSampler" => &[&[2, 4, 4, 4], &[2, 2, 3, 3]],
        "GridGenerator" => &[&[2, 2, 3, 3]],
        "ROIPooling" | "_contrib_ROIAlign" => &[&[2, 4, 4, 4], &[3, 5]],
        "_contrib_RROIAlign" => &[&[2, 4, 4, 4], &[3, 6]],
        "_contrib_DeformablePSROIPooling" => &[&[2, 1, 4, 4], &[3, 5], &[3, 2, 1, 1]],
        "_contrib_MultiBoxDetection" => &[&[2, 3, 4], &[2, 16], &[1, 4, 4]],
        "Correlation" => &[&[1, 2, 4, 4], &[1, 2, 4, 4]],
        "_contrib_MultiBoxTarget" => &[&[1, 3, 4], &[2, 2, 5], &[2, 2, 3]],
        "CTCLoss" => &[&[3, 2, 4], &[2, 2]],
        "_contrib_PSROIPooling" => &[&[2, 1, 4, 4], &[3, 5]],
        "_contrib_Proposal" | "_contrib_MultiProposal" => &[&[1, 24, 2, 3], &[1, 48, 2, 3], &[1, 3]],
        "_contrib_box_encode" => &[&[2, 5], &[2, 5], &[2, 5, 4], &[2, 3, 4], &[4], &[4]],
        "_contrib_box_nms" => &[&[2, 5, 6]],
        "col2im" => &[&[2, 3, 16]],
        "_image_normalize" => &[&[3, 4, 5]],
        name if name.starts_with("_image_") => &[&[4, 5, 3]],
        _ => &[],
    };
    let first: [&[usize]; 7] = [&[4], &[2, 4], &[2, 3, 4], &[2, 4, 4, 4], &[1, 2, 3, 4, 4], &[0, 4], &[]];
    let mut all: Vec<Vec<Shape>> = first.into_iter().map(|s| vec![Shape::new(s)]).collect();
    if !related.is_empty() {
        all.push(related.iter().map(|s| Shape::new(s)).collect());
    }
    all
}

/// Types of all inputs where the first has this one: what follows from it, else the same.
fn input_dtypes(op: &OpDef, attrs: &Attrs, first: DType, inputs: usize, outputs: usize) -> Vec<DType> {
    let mut known = vec![None; inputs];
    known.iter_mut().take(1).for_each(|dtype| *dtype = Some(first));
    let mut made = vec![None; outputs];
    let fits = (op.infer_dtype)(&mut DTypes { attrs, inputs: &mut known, outputs: &mut made }).is_ok();
    known.into_iter().map(|dtype| dtype.filter(|_| fits).unwrap_or(first)).collect()
}

/// Types of the outputs; where contents of the inputs decide about their shapes, those of `make`.
pub fn output_types(
    par: &dyn Par,
    op: &OpDef,
    attrs: &Attrs,
    inputs: &[TensorType],
    make: fn(&TensorType) -> Contents,
    around: Around<'_>,
) -> Option<Vec<TensorType>> {
    let Some(shapes) = op.rewrites.shapes_of_contents else {
        return infer_types(op, attrs, inputs).ok().map(|types| types.to_vec());
    };
    let made: Vec<Contents> = inputs.iter().map(make).collect();
    let refs: Vec<TensorRef<'_>> =
        inputs.iter().zip(&made).map(|(t, c)| TensorRef::new(t.dtype, &t.shape, c.bytes())).collect();
    let mut found = None;
    around(&mut || found = shapes(par, attrs, &refs).ok());
    let shapes = found?;
    let mut dtypes = vec![None; shapes.len()];
    let mut of_inputs: Vec<_> = inputs.iter().map(|t| Some(t.dtype)).collect();
    (op.infer_dtype)(&mut DTypes { attrs, inputs: &mut of_inputs, outputs: &mut dtypes }).ok()?;
    shapes.into_iter().zip(dtypes).map(|(shape, dtype)| Some(TensorType::new(dtype?, shape))).collect()
}

/// Contents of an array, aligned for every element type.
pub struct Contents(Vec<u64>, usize);

impl Contents {
    fn new(bytes: usize) -> Contents {
        Contents(vec![0; bytes.div_ceil(8)], bytes)
    }

    pub fn zeros(tensor: &TensorType) -> Contents {
        Contents::new(tensor.bytes())
    }

    /// 0, 1, 2, 0, and so on, in any element type.
    pub fn small_numbers(tensor: &TensorType) -> Contents {
        let mut made = Contents::zeros(tensor);
        let bytes = made.bytes_mut();
        match tensor.dtype {
            DType::F64 => fill(bytes, |n| (n as f64).to_ne_bytes()),
            DType::F32 => fill(bytes, |n| (n as f32).to_ne_bytes()),
            DType::F16 => fill(bytes, |n| half::f16::from_f32(n as f32).to_ne_bytes()),
            DType::I64 => fill(bytes, |n| (n as i64).to_ne_bytes()),
            DType::I32 => fill(bytes, |n| (n as i32).to_ne_bytes()),
            DType::Bool => fill(bytes, |n| [n % 2]),
            _ => fill(bytes, |n| [n]),
        }
        made
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.0)[..self.1]
    }
}

/// Runs the kernel; an error is an answer, a panic is not.
pub fn run(
    par: &dyn Par,
    kernel: &dyn Kernel,
    signature: &Signature<'_>,
    make: fn(&TensorType) -> Contents,
    around: Around<'_>,
) {
    let inputs: Vec<Contents> = signature.inputs.iter().map(make).collect();
    let refs: Vec<TensorRef<'_>> =
        signature.inputs.iter().zip(&inputs).map(|(t, z)| TensorRef::new(t.dtype, &t.shape, z.bytes())).collect();
    let mut outputs: Vec<Contents> = signature.outputs.iter().map(|t| Contents::new(t.bytes())).collect();
    let mut outs: Vec<TensorMut<'_>> = signature
        .outputs
        .iter()
        .zip(&mut outputs)
        .map(|(t, z)| TensorMut::new(t.dtype, &t.shape, z.bytes_mut()))
        .collect();
    let mut workspace = Contents::new(kernel.workspace());
    let packed = kernel.packing().map(|packing| {
        let chosen: Vec<TensorRef<'_>> = packing.inputs().iter().map(|i| refs[*i]).collect();
        let mut block = Contents::new(packing.bytes());
        packing.pack(par, &chosen, block.bytes_mut()).expect("weights of the right shape can be packed");
        assert!(!packing.key().is_empty());
        block
    });
    let mut call = KernelCall {
        par,
        inputs: &refs,
        outputs: &mut outs,
        workspace: workspace.bytes_mut(),
        packed: packed.as_ref().map(Contents::bytes),
        shared: None,
        random: Some(RandomKey { seed: 1, position: 2 }),
    };
    around(&mut || {
        let _ = kernel.run(&mut call);
    });
}

fn fill<const N: usize>(bytes: &mut [u8], of: impl Fn(u8) -> [u8; N]) {
    bytes.chunks_exact_mut(N).enumerate().for_each(|(i, to)| to.copy_from_slice(&of((i % 3) as u8)));
}

/// Types of all inputs for shapes of the first ones: others follow from these where they can, else
/// they are like the first.
pub fn input_types(op: &OpDef, attrs: &Attrs, given: &[Shape], dtype: DType) -> Option<Vec<TensorType>> {
    let (inputs, outputs) = (op.num_inputs(attrs), op.num_outputs(attrs));
    let mut ins = vec![PartialShape::UNKNOWN; inputs];
    let mut outs = vec![PartialShape::UNKNOWN; outputs];
    ins.iter_mut().zip(given).for_each(|(input, shape)| *input = PartialShape::from(shape));
    (op.infer_shape)(&mut Shapes { attrs, inputs: &mut ins, outputs: &mut outs }).ok()?;
    let dtypes = input_dtypes(op, attrs, dtype, inputs, outputs);
    let shape = |s: &PartialShape| s.complete().unwrap_or_else(|| given[0].clone());
    Some(ins.iter().zip(dtypes).map(|(s, dtype)| TensorType::new(dtype, shape(s))).collect())
}
