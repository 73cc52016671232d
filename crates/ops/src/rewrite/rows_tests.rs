//! Every operator that says that it treats rows alone, run on three rows and on each of them: the
//! bits must agree.

use crate::prelude::*;
use crate::testing::OpTest;
use mxrt_tensor::{DType, TensorType};

const ROWS: usize = 3;

/// An operator with attributes (`name=value`, separated by blanks) and inputs: extents after the
/// rows for those that are divided, all extents for the others.
struct RowsCase(&'static str, &'static str, &'static [CaseInput]);

enum CaseInput {
    Rows(&'static [usize]),
    Whole(&'static [usize]),
}
use CaseInput::{Rows, Whole};

const IMAGE: &[CaseInput] = &[Rows(&[4, 6, 6])];
const NORM: &[CaseInput] = &[Rows(&[4, 6, 6]), Whole(&[4]), Whole(&[4])];
const TWO: &[CaseInput] = &[Rows(&[4, 6]), Rows(&[4, 6])];

/// Operators whose batches are divided.
#[rustfmt::skip]
const APART: &[RowsCase] = &[
    RowsCase("Convolution", "kernel=(3,3) num_filter=5", &[Rows(&[4, 6, 6]), Whole(&[5, 4, 3, 3]), Whole(&[5])]),
    RowsCase("Deconvolution", "kernel=(2,2) stride=(2,2) num_filter=5", &[Rows(&[4, 6, 6]), Whole(&[4, 5, 2, 2])]),
    RowsCase("FullyConnected", "num_hidden=7", &[Rows(&[4, 6]), Whole(&[7, 24]), Whole(&[7])]),
    RowsCase("FullyConnected", "num_hidden=7 flatten=False", &[Rows(&[4, 6]), Whole(&[7, 6]), Whole(&[7])]),
    RowsCase("Pooling", "kernel=(2,2) stride=(2,2) pool_type=max", IMAGE),
    RowsCase("Pooling_v1", "kernel=(3,3) stride=(2,2) pad=(1,1) pool_type=avg", IMAGE),
    RowsCase("BatchNorm", "fix_gamma=False", &[Rows(&[4, 6, 6]), Whole(&[4]), Whole(&[4]), Whole(&[4]), Whole(&[4])]),
    RowsCase("_contrib_BatchNormWithReLU", "", &[Rows(&[4, 6, 6]), Whole(&[4]), Whole(&[4]), Whole(&[4]), Whole(&[4])]),
    RowsCase("LayerNorm", "", &[Rows(&[4, 6]), Whole(&[6]), Whole(&[6])]),
    RowsCase("_contrib_fft", "", &[Rows(&[4, 6])]),
    RowsCase("_contrib_ifft", "", &[Rows(&[4, 6])]),
    RowsCase("InstanceNorm", "", NORM),
    RowsCase("GroupNorm", "num_groups=2", &[Rows(&[4, 6, 6]), Whole(&[2]), Whole(&[2])]),
    RowsCase("L2Normalization", "", IMAGE),
    RowsCase("L2Normalization", "mode=channel", IMAGE),
    RowsCase("L2Normalization", "mode=spatial", IMAGE),
    RowsCase("LRN", "nsize=3", IMAGE),
    RowsCase("LeakyReLU", "act_type=leaky", IMAGE),
    RowsCase("LeakyReLU", "act_type=prelu", &[Rows(&[4, 6]), Whole(&[4])]),
    RowsCase("SoftmaxActivation", "", &[Rows(&[4])]),
    RowsCase("SoftmaxActivation", "mode=channel", IMAGE),
    RowsCase("SoftmaxOutput", "", &[Rows(&[4]), Rows(&[])]),
    RowsCase("softmax", "", IMAGE),
    RowsCase("log_softmax", "axis=1", IMAGE),
    RowsCase("softmin", "axis=2", IMAGE),
    RowsCase("Concat", "num_args=2 dim=1", TWO),
    RowsCase("_rnn_param_concat", "num_args=2 dim=1", TWO),
    RowsCase("_contrib_AdaptiveAvgPooling2D", "output_size=(2,3)", IMAGE),
    RowsCase("_contrib_BilinearResize2D", "height=3 width=9", IMAGE),
    RowsCase("UpSampling", "scale=2 sample_type=nearest num_args=1", IMAGE),
    RowsCase("UpSampling", "scale=2 sample_type=bilinear num_args=2 num_filter=4", &[Rows(&[4, 6, 6]), Whole(&[4, 1, 4, 4])]),
    RowsCase("BilinearSampler", "", &[Rows(&[4, 6, 6]), Rows(&[2, 3, 5])]),
    RowsCase("GridGenerator", "transform_type=affine target_shape=(3,4)", &[Rows(&[6])]),
    RowsCase("GridGenerator", "transform_type=warp", &[Rows(&[2, 3, 4])]),
    RowsCase("SpatialTransformer", "transform_type=affine sampler_type=bilinear target_shape=(3,4)", &[Rows(&[4, 6, 6]), Rows(&[6])]),
    RowsCase("_contrib_box_nms", "", &[Rows(&[5, 6])]),
    RowsCase("_contrib_box_decode", "", &[Rows(&[5, 4]), Whole(&[1, 5, 4])]),
    RowsCase("_contrib_bipartite_matching", "threshold=0.1", &[Rows(&[4, 6])]),
    RowsCase("_contrib_MultiBoxDetection", "", &[Rows(&[3, 5]), Rows(&[20]), Whole(&[1, 5, 4])]),
    RowsCase("_contrib_DeformableConvolution", "kernel=(3,3) num_filter=5 no_bias=True", &[Rows(&[4, 6, 6]), Rows(&[18, 4, 4]), Whole(&[5, 4, 3, 3])]),
    RowsCase("_contrib_ModulatedDeformableConvolution", "kernel=(3,3) num_filter=5 no_bias=True", &[Rows(&[4, 6, 6]), Rows(&[18, 4, 4]), Rows(&[9, 4, 4]), Whole(&[5, 4, 3, 3])]),
    RowsCase("Correlation", "pad_size=1", &[Rows(&[4, 6, 6]), Rows(&[4, 6, 6])]),
    RowsCase("im2col", "kernel=(2,2)", IMAGE),
    RowsCase("col2im", "kernel=(2,2) output_size=(3,3)", &[Rows(&[8, 4])]),
    RowsCase("stack", "num_args=2 axis=1", TWO),
    RowsCase("stack", "num_args=2 axis=-1", TWO),
    RowsCase("sum", "axis=1", IMAGE),
    RowsCase("mean", "axis=(2,3)", IMAGE),
    RowsCase("prod", "axis=0 exclude=True", &[Rows(&[4])]),
    RowsCase("nansum", "axis=-1", IMAGE),
    RowsCase("nanprod", "axis=2", IMAGE),
    RowsCase("max", "axis=1", IMAGE),
    RowsCase("min", "axis=1 keepdims=True", IMAGE),
    RowsCase("argmax", "axis=1", IMAGE),
    RowsCase("argmin", "axis=-1 keepdims=True", IMAGE),
    RowsCase("argmax_channel", "", IMAGE),
    RowsCase("SliceChannel", "num_outputs=2", IMAGE),
    RowsCase("SliceChannel", "num_outputs=4 squeeze_axis=True", IMAGE),
    RowsCase("_split_v2", "indices=(0,1) axis=1", IMAGE),
    RowsCase("_split_v2", "indices=() sections=4 axis=-1", IMAGE),
    RowsCase("slice_axis", "axis=1 begin=1 end=3", IMAGE),
    RowsCase("slice", "begin=(None,1) end=(None,3)", IMAGE),
    RowsCase("slice", "begin=(0,None) end=(3,None) step=(1,-1)", IMAGE),
    RowsCase("slice", "begin=(-3,2) end=(7,None)", IMAGE),
    RowsCase("slice_like", "axes=(1,-1)", &[Rows(&[4, 6, 6]), Whole(&[9, 2, 6, 3])]),
    RowsCase("slice_like", "", &[Rows(&[4, 6]), Rows(&[2, 5])]),
    RowsCase("transpose", "axes=(0,2,3,1)", IMAGE),
    RowsCase("SwapAxis", "dim1=1 dim2=-1", IMAGE),
    RowsCase("SwapAxis", "dim1=0 dim2=0", IMAGE),
    RowsCase("reverse", "axis=(1,3)", IMAGE),
    RowsCase("Pad", "mode=reflect pad_width=(0,0,0,0,1,1,2,0)", IMAGE),
    RowsCase("tile", "reps=(2,1)", IMAGE),
    RowsCase("tile", "reps=(1,2,1,2)", IMAGE),
    RowsCase("repeat", "repeats=2 axis=1", IMAGE),
    RowsCase("broadcast_axis", "axis=1 size=5", &[Rows(&[1, 6])]),
    RowsCase("space_to_depth", "block_size=2", IMAGE),
    RowsCase("depth_to_space", "block_size=2", IMAGE),
    RowsCase("Cast", "dtype=float16", IMAGE),
    RowsCase("amp_cast", "dtype=float16", IMAGE),
    RowsCase("Embedding", "input_dim=9 output_dim=5", &[Rows(&[4]), Whole(&[9, 5])]),
    RowsCase("_contrib_SparseEmbedding", "input_dim=9 output_dim=5", &[Rows(&[4]), Whole(&[9, 5])]),
    RowsCase("one_hot", "depth=9", &[Rows(&[4])]),
    RowsCase("batch_dot", "", &[Rows(&[4, 6]), Rows(&[6, 5])]),
    RowsCase("dot", "", &[Rows(&[40]), Whole(&[40, 5])]),
    RowsCase("LogisticRegressionOutput", "", &[Rows(&[4]), Rows(&[4])]),
    RowsCase("dot", "transpose_b=True", &[Rows(&[4, 6]), Whole(&[5, 6])]),
];

/// Operators that see, move or mix rows.
const TOGETHER: &[RowsCase] = &[
    RowsCase("softmax", "axis=0", IMAGE),
    RowsCase("Concat", "num_args=2 dim=0", TWO),
    RowsCase("stack", "num_args=2", TWO),
    RowsCase("stack", "num_args=2 axis=-4", TWO),
    RowsCase("sum", "axis=(0,1)", IMAGE),
    RowsCase("argmax", "", IMAGE),
    RowsCase("argmax", "axis=-4", IMAGE),
    RowsCase("argmin", "axis=0 keepdims=True", IMAGE),
    RowsCase("SliceChannel", "num_outputs=3 axis=0", IMAGE),
    RowsCase("_split_v2", "indices=(0,1) axis=-4", IMAGE),
    RowsCase("slice_axis", "axis=0 begin=0 end=2", IMAGE),
    RowsCase("slice", "begin=(1,) end=(None,)", IMAGE),
    RowsCase("slice", "begin=(0,) end=(2,)", IMAGE),
    RowsCase("slice", "begin=(None,) end=(None,) step=(-1,)", IMAGE),
    RowsCase("slice_like", "", &[Rows(&[4, 6]), Whole(&[2, 4, 6])]),
    RowsCase("slice_like", "axes=(0,)", &[Rows(&[4, 6]), Whole(&[2, 4, 6])]),
    RowsCase("transpose", "", IMAGE),
    RowsCase("transpose", "axes=(1,0,2,3)", IMAGE),
    RowsCase("SwapAxis", "dim1=0 dim2=1", IMAGE),
    RowsCase("SwapAxis", "dim1=1 dim2=-4", IMAGE),
    RowsCase("reverse", "axis=(0,)", IMAGE),
    RowsCase("tile", "reps=(2,1,1,1)", IMAGE),
    RowsCase("tile", "reps=(1,1,1,1,1)", IMAGE),
    RowsCase("repeat", "repeats=2", IMAGE),
    RowsCase("repeat", "repeats=2 axis=0", IMAGE),
    RowsCase("batch_dot", "", &[Rows(&[4, 6]), Whole(&[3, 6, 5])]),
    RowsCase("dot", "transpose_a=True", &[Rows(&[4]), Whole(&[3, 5])]),
    RowsCase("dot", "", &[Whole(&[2, 3]), Rows(&[5])]),
];

impl CaseInput {
    fn is_divided(&self) -> bool {
        matches!(self, Rows(_))
    }

    /// The input with `rows` rows.
    fn shape(&self, rows: usize) -> Vec<usize> {
        match self {
            Rows(rest) => std::iter::once(rows).chain(rest.iter().copied()).collect(),
            Whole(shape) => shape.to_vec(),
        }
    }

    /// The elements for these rows: small integers, so that they are indices, too, and no two rows
    /// are equal.
    fn values(&self, rows: std::ops::Range<usize>) -> Vec<f32> {
        let each: usize = self.shape(1).iter().product();
        let from = if self.is_divided() { rows.start * each..rows.end * each } else { 0..each };
        from.map(|i| (i * 37 % 11) as f32).collect()
    }
}

impl RowsCase {
    fn name(&self) -> String {
        format!("{}({})", self.0, self.1)
    }

    fn attrs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.1.split_whitespace().filter_map(|pair| pair.split_once('='))
    }

    fn says_by_rows(&self) -> bool {
        let def = registry().get(self.0).unwrap_or_else(|| panic!("no operator {}", self.0));
        let attrs = def.parse_attrs(self.attrs()).unwrap_or_else(|e| panic!("{}: {}", self.name(), e.message));
        let types: Vec<TensorType> = self.2.iter().map(|i| TensorType::new(DType::F32, i.shape(ROWS))).collect();
        let divided: Vec<bool> = self.2.iter().map(CaseInput::is_divided).collect();
        (def.rewrites.row_wise)(
            &attrs,
            &Signature { inputs: &types, outputs: &[], options: KernelOptions::default() },
            &divided,
        )
    }

    /// Bytes of the visible outputs, with the extents of a row.
    fn run(&self, rows: std::ops::Range<usize>) -> Vec<(Vec<usize>, Vec<u8>)> {
        let mut test = self.attrs().fold(OpTest::new(self.0), |test, (name, value)| test.attr(name, value));
        for input in self.2 {
            test = test.floats(&input.shape(rows.len()), &input.values(rows.clone()));
        }
        let def = registry().get(self.0).expect("looked up before");
        let visible = def.parse_attrs(self.attrs()).map_or(0, |attrs| def.num_outputs(&attrs));
        test.run_all().into_iter().take(visible).map(|a| (a.tensor.shape[1..].to_vec(), a.values())).collect()
    }
}

#[test]
fn rows_run_one_by_one_have_the_bits_of_the_batch() {
    for case in APART {
        assert!(case.says_by_rows(), "{} is not divided", case.name());
        let whole = case.run(0..ROWS);
        let mut parts = case.run(0..1);
        for row in 1..ROWS {
            for (all, next) in parts.iter_mut().zip(case.run(row..row + 1)) {
                assert_eq!(all.0, next.0, "{}", case.name());
                all.1.extend(next.1);
            }
        }
        assert_eq!(whole, parts, "{}", case.name());
    }
}

#[test]
fn what_sees_other_rows_is_not_divided() {
    for case in TOGETHER {
        assert!(!case.says_by_rows(), "{} is divided", case.name());
    }
}

/// Operators made by passes are never asked: whether a batch is divided is decided before they are
/// made, or they are constant.
#[test]
fn no_operator_claims_rows_without_a_case() {
    for def in registry().ops().iter().filter(|def| !def.internal) {
        let given: Vec<(&str, &str)> = def.attrs.iter().filter_map(required).collect();
        let Ok(attrs) = def.parse_attrs(given) else { continue };
        let inputs = vec![TensorType::new(DType::F32, [ROWS, 4, 6, 6].as_slice()); def.num_inputs(&attrs)];
        let signature = Signature { inputs: &inputs, outputs: &[], options: KernelOptions::default() };
        let mut first = vec![false; inputs.len()];
        first.iter_mut().take(1).for_each(|f| *f = true);
        let claims =
            [first, vec![true; inputs.len()]].iter().any(|flags| (def.rewrites.row_wise)(&attrs, &signature, flags));
        assert!(!claims || APART.iter().any(|case| case.0 == def.name), "{} has no case in APART", def.name);
    }
}

/// A value for a required attribute, so that most operators can be asked.
fn required(attr: &AttrDef) -> Option<(&'static str, &'static str)> {
    let value = match attr.kind {
        AttrKind::Int | AttrKind::OptInt | AttrKind::IntFrom(_) => "1",
        AttrKind::Shape | AttrKind::SparseShape | AttrKind::OptShape => "(1,1)",
        AttrKind::Float | AttrKind::OptFloat => "1",
        AttrKind::DType(_) | AttrKind::OptDType(_) => "float32",
        AttrKind::Enum(values) => values.first()?,
        _ => return None,
    };
    attr.default.is_none().then_some((attr.name, value))
}
