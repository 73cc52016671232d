//! Definition of an operator.

use super::{AttrDef, Attrs, DTypes, Shapes};
use crate::execution::{Kernel, KernelForm, Signature};
use crate::rewrite::Rewrites;
use mxrt_engine::OpError;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Names of an operator's inputs.
#[derive(Clone, Copy)]
pub enum Inputs {
    /// always these
    Fixed(&'static [&'static str]),
    /// depending on the attributes (`no_bias`)
    ByAttrs(fn(&Attrs) -> &'static [&'static str]),
    /// number of inputs given by the attribute (usually `num_args`): `<prefix>0`, `<prefix>1`, …,
    /// or `named`
    Variadic {
        /// attribute that holds the number
        count: &'static str,
        /// name without its number
        prefix: &'static str,
        /// names that take the place of the numbered ones, for some attributes
        named: fn(&Attrs) -> Option<&'static [&'static str]>,
    },
    /// arrays, as many as the attribute says, `<prefix>0`, `<prefix>1`, …, and then the least and
    /// the largest number of each, `<prefix>0_min`, `<prefix>0_max`, …
    Ranged {
        /// attribute that holds the number of arrays
        count: &'static str,
        /// name without its number
        prefix: &'static str,
    },
    /// inputs named by an object among the attributes
    Computed {
        /// the names
        names: fn(&Attrs) -> &[String],
        /// how many of the last ones are auxiliary states
        states: fn(&Attrs) -> usize,
    },
}

/// Outputs that a caller can see.
#[derive(Clone, Copy)]
pub enum Outputs {
    /// one, called `output`
    One,
    /// one, with this name
    OneNamed(&'static str),
    /// outputs with these names
    Named(fn(&Attrs) -> &'static [&'static str]),
    /// number of outputs, called `output0`, `output1`, … (`output` when it is one)
    Count(fn(&Attrs) -> usize),
    /// number of outputs, called `output0`, `output1`, …, also when it is one
    Numbered(fn(&Attrs) -> usize),
    /// outputs named by an object among the attributes
    Computed(fn(&Attrs) -> &[String]),
}

/// Chooses a kernel for complete types.
pub type Bind = fn(&Attrs, &Signature<'_>) -> Result<Box<dyn Kernel>, OpError>;

/// Says what an operator computes for complete types; `None`: kernels of devices know no words for
/// it. The error is that of [`Bind`].
pub type Form = fn(&Attrs, &Signature<'_>) -> Result<Option<KernelForm>, OpError>;

/// Positions of auxiliary states among an operator's inputs.
pub type StatePositions = SmallVec<[usize; 2]>;

/// The definition of an operator: names, attributes, inputs, outputs, inference, and the kernel for
/// the host.
///
/// What graph passes may do with it stands apart, in [`Rewrites`], whose documentation also says
/// where kernels of devices and subgraphs come in.
pub struct OpDef {
    /// canonical name, as written to symbol files
    pub name: &'static str,
    /// other names under which files and calls know it
    pub aliases: &'static [&'static str],
    /// documentation; the first line is a summary
    pub doc: &'static str,
    /// inputs, in order
    pub inputs: Inputs,
    /// positions of auxiliary states among the inputs (BatchNorm's moving statistics), unless
    /// `inputs` says; [`OpDef::states`] is what to ask
    pub aux: &'static [usize],
    /// positions of auxiliary states, where attributes say which they are
    pub aux_by_attrs: Option<fn(&Attrs) -> StatePositions>,
    /// how many inputs MXNet names before the attributes in the list of arguments; the others
    /// follow them
    pub inputs_before_attrs: usize,
    /// visible outputs
    pub outputs: Outputs,
    /// outputs MXNet's operator has including hidden ones (Dropout's mask), where that differs;
    /// only files see it
    pub hidden_outputs: fn(&Attrs) -> usize,
    /// declared attributes
    pub attrs: &'static [AttrDef],
    /// true when unknown attributes are ignored, as MXNet does for operators without parameters
    pub ignores_unknown_attrs: bool,
    /// fills in what can be known about shapes, in both directions; called again when more is known
    pub infer_shape: fn(&mut Shapes<'_>) -> Result<(), OpError>,
    /// likewise for element types
    pub infer_dtype: fn(&mut DTypes<'_>) -> Result<(), OpError>,
    /// chooses a kernel for complete types on the CPU; called by
    /// [`bind_kernel`](crate::bind_kernel) alone
    pub bind: Bind,
    /// says for complete types what it computes, for devices with kernels of their own. Operators
    /// that only change the shape ([`Rewrites::is_identity`]) and functions of single elements
    /// ([`Rewrites::elementwise`]) need not set it; called by [`form_of`](crate::form_of) alone
    pub form: Form,
    /// equal inputs need not give equal outputs: every execution is one of its own, and gets its
    /// own piece of the random stream
    pub random: bool,
    /// rewrites that graph passes may apply to it
    pub rewrites: &'static Rewrites,
    /// internal: made by graph passes only, neither callable from Python nor loadable from files
    pub internal: bool,
    /// reads files that its attributes name: callable, but not loadable from files of graphs
    pub reads_files: bool,
}

fn not_bound(_: &Attrs, _: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    Err(OpError::new(mxrt_engine::FailureKind::NotImplemented, "the operator has no kernel for the CPU"))
}

impl OpDef {
    /// Defaults to start a definition from: one input `data`, one output of the same type, no
    /// attributes.
    pub const BASE: OpDef = OpDef {
        name: "",
        aliases: &[],
        doc: "",
        inputs: Inputs::Fixed(&["data"]),
        aux: &[],
        aux_by_attrs: None,
        inputs_before_attrs: usize::MAX,
        outputs: Outputs::One,
        hidden_outputs: |_| 0,
        attrs: &[],
        ignores_unknown_attrs: false,
        infer_shape: |shapes| shapes.all_same(),
        infer_dtype: |dtypes| dtypes.all_same(),
        bind: not_bound,
        form: |_, _| Ok(None),
        random: false,
        rewrites: &Rewrites::NONE,
        internal: false,
        reads_files: false,
    };

    /// Parses attributes given as text. Errors carry the operator's name.
    pub fn parse_attrs<'a>(&self, given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Attrs, OpError> {
        let result = if self.ignores_unknown_attrs {
            let known = given.into_iter().filter(|(k, _)| self.attrs.iter().any(|d| d.name == *k));
            Attrs::parse(self.attrs, known)
        } else {
            Attrs::parse(self.attrs, given)
        };
        result.map_err(|e| e.op(self.name))
    }

    /// Names of the inputs for these attributes.
    pub fn input_names(&self, attrs: &Attrs) -> Vec<Cow<'static, str>> {
        match self.inputs {
            Inputs::Fixed(names) => names.iter().map(|n| Cow::Borrowed(*n)).collect(),
            Inputs::ByAttrs(names) => names(attrs).iter().map(|n| Cow::Borrowed(*n)).collect(),
            Inputs::Variadic { count, prefix, named } => match named(attrs) {
                Some(names) => names.iter().map(|n| Cow::Borrowed(*n)).collect(),
                None => (0..attrs.count(count)).map(|i| Cow::Owned(format!("{prefix}{i}"))).collect(),
            },
            Inputs::Ranged { count, prefix } => {
                let (arrays, ranges) = (0..attrs.count(count), 0..attrs.count(count));
                let ends = |i| [format!("{prefix}{i}_min"), format!("{prefix}{i}_max")];
                arrays.map(|i| format!("{prefix}{i}")).chain(ranges.flat_map(ends)).map(Cow::Owned).collect()
            }
            Inputs::Computed { names, .. } => names(attrs).iter().map(|n| Cow::Owned(n.clone())).collect(),
        }
    }

    /// Number of inputs for these attributes.
    pub fn num_inputs(&self, attrs: &Attrs) -> usize {
        match self.inputs {
            Inputs::Fixed(names) => names.len(),
            Inputs::ByAttrs(names) => names(attrs).len(),
            Inputs::Variadic { count, named, .. } => named(attrs).map_or_else(|| attrs.count(count), <[_]>::len),
            Inputs::Ranged { count, .. } => attrs.count(count).saturating_mul(3),
            Inputs::Computed { names, .. } => names(attrs).len(),
        }
    }

    /// Positions of auxiliary states among the inputs.
    pub fn states(&self, attrs: &Attrs) -> StatePositions {
        match self.inputs {
            Inputs::Computed { names, states } => {
                let all = names(attrs).len();
                (all - states(attrs).min(all)..all).collect()
            }
            _ => match self.aux_by_attrs {
                Some(aux) => aux(attrs),
                None => self.aux.into(),
            },
        }
    }

    /// Number of visible outputs.
    pub fn num_outputs(&self, attrs: &Attrs) -> usize {
        match self.outputs {
            Outputs::One | Outputs::OneNamed(_) => 1,
            Outputs::Named(names) => names(attrs).len(),
            Outputs::Count(count) | Outputs::Numbered(count) => count(attrs),
            Outputs::Computed(names) => names(attrs).len(),
        }
    }

    /// Number of outputs as MXNet counts them in files, hidden ones included.
    pub fn total_outputs(&self, attrs: &Attrs) -> usize {
        self.num_outputs(attrs) + (self.hidden_outputs)(attrs)
    }

    /// Name of a visible output: `output`, or what the operator calls it.
    pub fn output_name(&self, attrs: &Attrs, index: usize) -> Cow<'static, str> {
        match self.outputs {
            Outputs::One => Cow::Borrowed("output"),
            Outputs::OneNamed(name) => Cow::Borrowed(name),
            Outputs::Named(names) => names(attrs).get(index).map_or(Cow::Borrowed("output"), |n| Cow::Borrowed(*n)),
            Outputs::Computed(names) => {
                names(attrs).get(index).map_or(Cow::Borrowed("output"), |n| Cow::Owned(n.clone()))
            }
            Outputs::Count(count) if count(attrs) == 1 => Cow::Borrowed("output"),
            Outputs::Count(_) | Outputs::Numbered(_) => Cow::Owned(format!("output{index}")),
        }
    }
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpDef({})", self.name)
    }
}
