//! The table of operators is complete and consistent.

use mxrt_engine::OpError;
use mxrt_kernels::par::Serial;
use mxrt_ops::{
    AttrDef, AttrKind, Attrs, CustomCall, CustomOperator, CustomOperators, CustomTypes, DTypes, ImageChannels,
    ImageFiles, InnerValue, Inputs, Kernel, KernelCall, KernelOptions, LateShapes, NESTED, NestedWriter, OpDef,
    RandomKey, Shapes, Signature, bind_kernel, has_nested_graph, infer_types, register_custom_operators, registry,
    set_image_files,
};
use mxrt_tensor::{DType, PartialShape, Shape, TensorMut, TensorRef, TensorType};
use std::collections::HashMap;
use std::sync::Arc;

#[test]
fn names_and_aliases_are_unique_and_documented() {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for op in registry().ops() {
        for name in std::iter::once(&op.name).chain(op.aliases) {
            if let Some(other) = seen.insert(name, op.name) {
                panic!("{name} is both {other} and {}", op.name);
            }
            assert!(std::ptr::eq(registry().get(name).expect("it is registered"), *op));
        }
        assert!(op.doc.ends_with('.'), "{}: the documentation is a sentence", op.name);
        for attr in op.attrs {
            assert!(
                attr.doc.ends_with('.') || attr.doc.ends_with("..."),
                "{}: {} needs a sentence",
                op.name,
                attr.name
            );
        }
    }
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
fn attrs(op: &OpDef, given: &[(&str, String)]) -> Attrs {
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
    if op.name == "_image_resize" {
        texts.push(("size", "(3, 3)".to_owned()));
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
fn variants(op: &OpDef) -> Vec<Attrs> {
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
fn shapes(op: &OpDef) -> Vec<Vec<Shape>> {
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

/// Asks everything that the definition can be asked; a panic means that it asks for an attribute it
/// does not declare, or trusts shapes.
fn exercise(op: &OpDef, attrs: &Attrs) -> usize {
    let inputs = op.num_inputs(attrs);
    assert_eq!(op.input_names(attrs).len(), inputs, "{}", op.name);
    let outputs = op.num_outputs(attrs);
    assert!(outputs > 0 && op.total_outputs(attrs) >= outputs, "{}", op.name);
    assert!(op.aux.iter().all(|i| *i < inputs), "{}", op.name);
    (0..outputs).for_each(|i| assert!(!op.output_name(attrs, i).is_empty()));
    (op.rewrites.is_identity)(attrs);

    let mut unknown_in = vec![PartialShape::UNKNOWN; inputs];
    let mut unknown_out = vec![PartialShape::UNKNOWN; outputs];
    // Whatever comes of it, nothing known must not be a panic.
    let _ = (op.infer_shape)(&mut Shapes { attrs, inputs: &mut unknown_in, outputs: &mut unknown_out });
    let _ = (op.infer_dtype)(&mut DTypes { attrs, inputs: &mut vec![None; inputs], outputs: &mut vec![None; outputs] });

    let mut bound = 0;
    for given in shapes(op) {
        let dtypes = [DType::F32, DType::F64, DType::F16, DType::I32, DType::Bool, DType::I16, DType::I8, DType::U8];
        for dtype in dtypes {
            // Inputs that are not given follow from the first where they can, else they are like
            // it.
            let mut ins = vec![PartialShape::UNKNOWN; inputs];
            let mut outs = vec![PartialShape::UNKNOWN; outputs];
            ins.iter_mut().zip(&given).for_each(|(input, shape)| *input = PartialShape::from(shape));
            if (op.infer_shape)(&mut Shapes { attrs, inputs: &mut ins, outputs: &mut outs }).is_err() {
                continue;
            }
            let types = input_dtypes(op, attrs, dtype, inputs, outputs);
            let complete = ins.iter().zip(types);
            let complete: Vec<TensorType> = complete
                .map(|(s, dtype)| TensorType::new(dtype, s.complete().unwrap_or_else(|| given[0].clone())))
                .collect();
            let types = match op.rewrites.late_shapes {
                // Contents that are all 0 decide.
                Some(shapes) => shapes_of_zeros(op, attrs, &complete, shapes),
                None => infer_types(op, attrs, &complete).ok().map(|types| types.to_vec()),
            };
            let Some(types) = types else { continue };
            if types.iter().any(|t| t.checked_bytes().is_none_or(|b| b > 1 << 20)) {
                continue;
            }
            let signature = Signature { inputs: &complete, outputs: &types, options: KernelOptions::default() };
            (op.rewrites.blocked_form)(attrs, &signature);
            if let Ok(kernel) = bind_kernel(op, attrs, &signature) {
                assert!(!kernel.describe().is_empty() && kernel.cost_ns() > 0, "{}", op.name);
                run_on_zeros(&*kernel, &signature);
                bound += 1;
            }
        }
    }
    bound
}

/// Types of all inputs where the first has this one: what follows from it, else the same.
fn input_dtypes(op: &OpDef, attrs: &Attrs, first: DType, inputs: usize, outputs: usize) -> Vec<DType> {
    let mut known = vec![None; inputs];
    known.iter_mut().take(1).for_each(|dtype| *dtype = Some(first));
    let mut made = vec![None; outputs];
    let fits = (op.infer_dtype)(&mut DTypes { attrs, inputs: &mut known, outputs: &mut made }).is_ok();
    known.into_iter().map(|dtype| dtype.filter(|_| fits).unwrap_or(first)).collect()
}

/// Types of the outputs where the contents of the inputs, which are 0, decide about their shapes.
fn shapes_of_zeros(op: &OpDef, attrs: &Attrs, inputs: &[TensorType], shapes: LateShapes) -> Option<Vec<TensorType>> {
    let zeros: Vec<Zeros> = inputs.iter().map(|t| Zeros::new(t.bytes())).collect();
    let refs: Vec<TensorRef<'_>> =
        inputs.iter().zip(&zeros).map(|(t, z)| TensorRef::new(t.dtype, &t.shape, z.bytes())).collect();
    let shapes = shapes(attrs, &refs).ok()?;
    let mut dtypes = vec![None; shapes.len()];
    let mut of_inputs: Vec<_> = inputs.iter().map(|t| Some(t.dtype)).collect();
    (op.infer_dtype)(&mut DTypes { attrs, inputs: &mut of_inputs, outputs: &mut dtypes }).ok()?;
    shapes.into_iter().zip(dtypes).map(|(shape, dtype)| Some(TensorType::new(dtype?, shape))).collect()
}

/// Zeros, aligned for every element type.
struct Zeros(Vec<u64>, usize);

impl Zeros {
    fn new(bytes: usize) -> Zeros {
        Zeros(vec![0; bytes.div_ceil(8)], bytes)
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.0)[..self.1]
    }
}

/// Runs the kernel; an error is an answer, a panic is not.
fn run_on_zeros(kernel: &dyn Kernel, signature: &Signature<'_>) {
    let inputs: Vec<Zeros> = signature.inputs.iter().map(|t| Zeros::new(t.bytes())).collect();
    let refs: Vec<TensorRef<'_>> =
        signature.inputs.iter().zip(&inputs).map(|(t, z)| TensorRef::new(t.dtype, &t.shape, z.bytes())).collect();
    let mut outputs: Vec<Zeros> = signature.outputs.iter().map(|t| Zeros::new(t.bytes())).collect();
    let mut outs: Vec<TensorMut<'_>> = signature
        .outputs
        .iter()
        .zip(&mut outputs)
        .map(|(t, z)| TensorMut::new(t.dtype, &t.shape, z.bytes_mut()))
        .collect();
    let mut workspace = Zeros::new(kernel.workspace());
    let packed = kernel.packing().map(|packing| {
        let chosen: Vec<TensorRef<'_>> = packing.inputs().iter().map(|i| refs[*i]).collect();
        let mut block = Zeros::new(packing.bytes());
        packing.pack(&Serial, &chosen, block.bytes_mut()).expect("weights of the right shape can be packed");
        assert!(!packing.key().is_empty());
        block
    });
    let _ = kernel.run(&mut KernelCall {
        par: &Serial,
        inputs: &refs,
        outputs: &mut outs,
        workspace: workspace.bytes_mut(),
        packed: packed.as_ref().map(Zeros::bytes),
        shared: None,
        random: Some(RandomKey { seed: 1, position: 2 }),
    });
}

/// An operator of the program with every name: one input and one state, and an output like these.
struct Same;

impl CustomOperators for Same {
    fn make(&self, _: &str, _: &[(&str, &str)]) -> Result<Option<Arc<dyn CustomOperator>>, OpError> {
        Ok(Some(Arc::new(Same)))
    }
}

impl CustomOperator for Same {
    fn arguments(&self) -> Vec<String> {
        vec!["data".into()]
    }

    fn states(&self) -> Vec<String> {
        vec!["state".into()]
    }

    fn outputs(&self) -> Vec<String> {
        vec!["output".into()]
    }

    fn infer_shape(&self, arguments: &[PartialShape]) -> Result<CustomTypes<PartialShape>, OpError> {
        Ok(CustomTypes { arguments: arguments.into(), states: arguments.into(), outputs: arguments.into() })
    }

    fn infer_dtype(&self, arguments: &[Option<DType>]) -> Result<CustomTypes<Option<DType>>, OpError> {
        Ok(CustomTypes { arguments: arguments.into(), states: arguments.into(), outputs: arguments.into() })
    }

    fn begin(&self, _: CustomCall) {}
}

/// Files of which each is an image of two by three pixels.
struct Images;

impl ImageFiles for Images {
    fn read(&self, _: &str) -> Result<Vec<u8>, OpError> {
        Ok(Vec::new())
    }

    fn size(&self, _: &[u8]) -> Result<[usize; 2], OpError> {
        Ok([2, 3])
    }

    fn pixels(&self, _: &[u8], channels: ImageChannels) -> Result<Vec<u8>, OpError> {
        Ok(vec![7; if channels == ImageChannels::Grey { 6 } else { 18 }])
    }
}

#[test]
fn definitions_answer_every_question_without_a_panic() {
    register_custom_operators(Arc::new(Same));
    set_image_files(&Images);
    // Blocked operators trust the layout pass with their shapes; fused chains, attention and lines
    // trust the passes that write their program, places and sizes. The graph's tests run them.
    let made_by_passes = |op: &OpDef| {
        op.attrs.iter().any(|a| matches!(a.name, "layouts" | "program"))
            || matches!(op.name, "_fused_attention" | "_to_lines")
    };
    // The graphs of control flow are the node's, so the operators alone bind no kernel.
    let runs_graphs = |op: &OpDef| matches!(op.name, "_foreach" | "_while_loop" | "_cond");
    // No kernel computes an operator of the program, unless it says so.
    let runs_in_program = |op: &OpDef| matches!(op.name, "Custom" | "_custom_with_states");
    // Nothing but the array given as `out` tells the shape of this one.
    let is_told_by_out = |op: &OpDef| op.name == "_set_value";
    // This one counts what csr arrays store, and has no kernel for dense ones.
    let is_sparse_alone = |op: &OpDef| op.name == "_contrib_getnnz";
    let mut wrong = Vec::new();
    for op in registry().ops().iter().filter(|op| !made_by_passes(op)) {
        let bound: usize = variants(op).iter().map(|attrs| exercise(op, attrs)).sum();
        let binds = !(runs_graphs(op) || runs_in_program(op) || is_told_by_out(op) || is_sparse_alone(op));
        if (bound > 0) != binds {
            wrong.push((op.name, bound));
        }
    }
    assert!(wrong.is_empty(), "how often operators bind a kernel: {wrong:?}");
}
