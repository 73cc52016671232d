//! Flags of a [`crate::CachedOp`].

use crate::ir::Graph;
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{AttrDef, AttrKind, Attrs};

static FLAGS: &[AttrDef] = &[
    AttrDef::new("static_alloc", AttrKind::Bool, "False", "accepted; memory is always planned once per signature"),
    AttrDef::new("static_shape", AttrKind::Bool, "False", "accepted; every signature has its own plan"),
    AttrDef::new("inline_limit", AttrKind::Int, "2", "accepted; without effect"),
    AttrDef::new("forward_bulk_size", AttrKind::OptInt, "None", "accepted; a plan is always one operation"),
    AttrDef::new("backward_bulk_size", AttrKind::OptInt, "None", "accepted; there is no training"),
    AttrDef::new("data_indices", AttrKind::Shape, "()", "positions of the data among the inputs"),
    AttrDef::new("param_indices", AttrKind::Shape, "()", "positions of the parameters among the inputs"),
    AttrDef::new("subgraph", AttrKind::Str, "", "accepted; without effect"),
    AttrDef::new("is_dynamic", AttrKind::Bool, "False", "accepted; without effect"),
    AttrDef::new(
        "precision",
        AttrKind::Enum(&["default", "exact", "bf16", "w8", "auto"]),
        "default",
        "exact: no algorithm that trades accuracy for speed (Winograd convolution); \
         bf16: inputs and weights of layers rounded to bf16 where that is faster; \
         w8: weights of dense and recurrent layers stored in a byte each, with a factor for each row; \
         auto: bf16 on processors with tiles (AMX), else default",
    ),
    AttrDef::new(
        "fallback",
        AttrKind::OptBool,
        "None",
        "whether operators for which a GPU has no kernel run on the host, with copies around them; \
         as MXRT_GPU_FALLBACK says if not given",
    ),
    AttrDef::new("thread_safe", AttrKind::Bool, "True", "accepted; every CachedOp is thread-safe"),
];

/// Flags of MXNet's `CachedOp`. mxrt accepts all of them. Some have no effect, because mxrt always
/// does what they ask for.
#[derive(Clone, Debug, Default)]
pub struct CachedOpFlags {
    pub(crate) data: Vec<usize>,
    pub(crate) params: Vec<usize>,
    pub(crate) accuracy: Accuracy,
    pub(crate) fallback: Option<bool>,
}

/// Accuracy that the flag `precision` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Accuracy {
    #[default]
    Default,
    Exact,
    Bf16,
    W8,
    Auto,
}

impl CachedOpFlags {
    /// Every flag: name, type, default and meaning.
    pub fn definitions() -> &'static [AttrDef] {
        FLAGS
    }

    /// Parses (name, text) pairs; unknown names and bad values are errors.
    pub fn parse<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<CachedOpFlags, OpError> {
        let attrs = Attrs::parse(FLAGS, given).map_err(|e| e.op("CachedOp"))?;
        if attrs.bool("static_shape") && !attrs.bool("static_alloc") {
            let message = "static_alloc must be True when static_shape is True";
            return Err(OpError::new(FailureKind::Value, message).op("CachedOp"));
        }
        let indices = |name: &str| -> Result<Vec<usize>, OpError> {
            let wrong =
                |i: &i64| OpError::new(FailureKind::Value, format!("{name}: {i} is not a position of an input"));
            attrs.ints(name).iter().map(|i| usize::try_from(*i).map_err(|_| wrong(i).op("CachedOp"))).collect()
        };
        let accuracy = match attrs.str("precision") {
            "exact" => Accuracy::Exact,
            "bf16" => Accuracy::Bf16,
            "w8" => Accuracy::W8,
            "auto" => Accuracy::Auto,
            _ => Accuracy::Default,
        };
        let (data, params) = (indices("data_indices")?, indices("param_indices")?);
        Ok(CachedOpFlags { data, params, accuracy, fallback: attrs.opt_bool("fallback") })
    }
}

/// Marks the inputs of a graph that are parameters: those that the flags name, or, if they name
/// none, those in slots that parameters usually feed.
pub(crate) fn mark_constants(graph: &mut Graph, flags: &CachedOpFlags) -> Result<(), OpError> {
    let n = graph.inputs.len();
    if let Some(i) = flags.data.iter().chain(&flags.params).find(|i| **i >= n) {
        let message = format!("data_indices or param_indices names input {i}, but there are {n} inputs");
        return Err(OpError::new(FailureKind::Index, message).op("CachedOp"));
    }
    if flags.params.is_empty() {
        graph.guess_constants();
        for i in &flags.data {
            graph.inputs[*i].constant = false;
        }
        return Ok(());
    }
    for i in &flags.params {
        graph.inputs[*i].constant = !flags.data.contains(i);
    }
    Ok(())
}
