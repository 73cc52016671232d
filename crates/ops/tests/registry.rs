//! The table of operators is complete and consistent.

mod common;

use common::{Contents, input_types, output_types, plainly, run, shapes, variants};
use mxrt_engine::OpError;
use mxrt_kernels::par::Serial;
use mxrt_ops::{
    Attrs, CustomCall, CustomOperator, CustomOperators, CustomTypes, DTypes, ImageChannels, ImageFiles, KernelOptions,
    OpDef, Shapes, Signature, bind_kernel, register_custom_operators, registry, set_image_files,
};
use mxrt_tensor::{DType, PartialShape};
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
            let Some(complete) = input_types(op, attrs, &given, dtype) else { continue };
            let Some(types) = output_types(&Serial, op, attrs, &complete, Contents::zeros, &plainly) else { continue };
            if types.iter().any(|t| t.checked_bytes().is_none_or(|b| b > 1 << 20)) {
                continue;
            }
            let signature = Signature { inputs: &complete, outputs: &types, options: KernelOptions::default() };
            (op.rewrites.blocked_form)(attrs, &signature);
            if let Ok(kernel) = bind_kernel(op, attrs, &signature) {
                assert!(!kernel.describe().is_empty() && kernel.cost_ns() > 0, "{}", op.name);
                run(&Serial, &*kernel, &signature, Contents::zeros, &plainly);
                bound += 1;
            }
        }
    }
    bound
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
