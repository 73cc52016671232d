"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "Activation",
    "BatchNorm",
    "BlockGrad",
    "Cast",
    "Concat",
    "Convolution",
    "Crop",
    "Deconvolution",
    "Dropout",
    "ElementWiseSum",
    "Embedding",
    "Flatten",
    "FullyConnected",
    "GroupNorm",
    "InstanceNorm",
    "L2Normalization",
    "LRN",
    "LayerNorm",
    "LeakyReLU",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "MakeLoss",
    "Pad",
    "Pooling",
    "Reshape",
    "SVMOutput",
    "SequenceLast",
    "SequenceMask",
    "SequenceReverse",
    "SliceChannel",
    "Softmax",
    "SoftmaxActivation",
    "SoftmaxOutput",
    "SwapAxis",
    "abs",
    "add_n",
    "amp_cast",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "argmax",
    "argmax_channel",
    "argmin",
    "argsort",
    "batch_dot",
    "batch_take",
    "broadcast_add",
    "broadcast_axes",
    "broadcast_axis",
    "broadcast_div",
    "broadcast_equal",
    "broadcast_greater",
    "broadcast_greater_equal",
    "broadcast_hypot",
    "broadcast_lesser",
    "broadcast_lesser_equal",
    "broadcast_like",
    "broadcast_logical_and",
    "broadcast_logical_or",
    "broadcast_logical_xor",
    "broadcast_maximum",
    "broadcast_minimum",
    "broadcast_minus",
    "broadcast_mod",
    "broadcast_mul",
    "broadcast_not_equal",
    "broadcast_plus",
    "broadcast_power",
    "broadcast_sub",
    "broadcast_to",
    "cast",
    "cbrt",
    "ceil",
    "choose_element_0index",
    "clip",
    "concat",
    "cos",
    "cosh",
    "crop",
    "cumsum",
    "degrees",
    "depth_to_space",
    "diag",
    "dot",
    "elemwise_add",
    "elemwise_div",
    "elemwise_mul",
    "elemwise_sub",
    "erf",
    "erfinv",
    "exp",
    "expand_dims",
    "expm1",
    "fix",
    "flatten",
    "flip",
    "floor",
    "gamma",
    "gammaln",
    "gather_nd",
    "hard_sigmoid",
    "identity",
    "linalg_gemm",
    "linalg_gemm2",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logical_not",
    "make_loss",
    "max",
    "max_axis",
    "mean",
    "min",
    "min_axis",
    "moments",
    "nanprod",
    "nansum",
    "negative",
    "norm",
    "normal",
    "one_hot",
    "ones_like",
    "pad",
    "pick",
    "prod",
    "radians",
    "random_exponential",
    "random_gamma",
    "random_generalized_negative_binomial",
    "random_negative_binomial",
    "random_normal",
    "random_poisson",
    "random_randint",
    "random_uniform",
    "ravel_multi_index",
    "rcbrt",
    "reciprocal",
    "relu",
    "repeat",
    "reshape",
    "reshape_like",
    "reverse",
    "rint",
    "round",
    "rsqrt",
    "sample_exponential",
    "sample_gamma",
    "sample_generalized_negative_binomial",
    "sample_multinomial",
    "sample_negative_binomial",
    "sample_normal",
    "sample_poisson",
    "sample_uniform",
    "scatter_nd",
    "shape_array",
    "shuffle",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size_array",
    "slice",
    "slice_axis",
    "slice_like",
    "smooth_l1",
    "softmax",
    "softmax_cross_entropy",
    "softmin",
    "softsign",
    "sort",
    "space_to_depth",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "sum",
    "sum_axis",
    "swapaxes",
    "take",
    "tan",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "trunc",
    "uniform",
    "unravel_index",
    "where",
    "zeros_like",
]

def Activation(
    data: Symbol | None = ...,
    act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def BatchNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    moving_mean: Symbol | None = ...,
    moving_var: Symbol | None = ...,
    eps: float = ...,
    momentum: float = ...,
    fix_gamma: bool = ...,
    use_global_stats: bool = ...,
    output_mean_var: bool = ...,
    axis: int = ...,
    cudnn_off: bool = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def BlockGrad(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Cast(
    data: Symbol | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Concat(
    *data: Symbol,
    dim: int = ...,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Convolution(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
    kernel: int | Sequence[int | None] = ...,
    stride: int | Sequence[int | None] = ...,
    dilate: int | Sequence[int | None] = ...,
    pad: int | Sequence[int | None] = ...,
    num_filter: int = ...,
    num_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    cudnn_tune: Literal[None, 'fastest', 'limited_workspace', 'off'] = ...,
    cudnn_off: bool = ...,
    layout: Literal[None, 'NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Crop(
    *data: Symbol,
    offset: int | Sequence[int | None] = ...,
    h_w: int | Sequence[int | None] = ...,
    center_crop: bool = ...,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Deconvolution(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
    kernel: int | Sequence[int | None] = ...,
    stride: int | Sequence[int | None] = ...,
    dilate: int | Sequence[int | None] = ...,
    pad: int | Sequence[int | None] = ...,
    adj: int | Sequence[int | None] = ...,
    target_shape: int | Sequence[int | None] = ...,
    num_filter: int = ...,
    num_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    cudnn_tune: Literal[None, 'fastest', 'limited_workspace', 'off'] = ...,
    cudnn_off: bool = ...,
    layout: Literal[None, 'NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Dropout(
    data: Symbol | None = ...,
    p: float = ...,
    mode: Literal['always', 'training'] = ...,
    axes: int | Sequence[int | None] = ...,
    cudnn_off: bool | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def ElementWiseSum(
    *data: Symbol,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Embedding(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Any = ...,
    sparse_grad: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Flatten(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def FullyConnected(
    data: Symbol | None = ...,
    weight: Symbol | None = ...,
    bias: Symbol | None = ...,
    num_hidden: int = ...,
    no_bias: bool = ...,
    flatten: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def GroupNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    num_groups: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def InstanceNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    eps: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def L2Normalization(
    data: Symbol | None = ...,
    eps: float = ...,
    mode: Literal['channel', 'instance', 'spatial'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LRN(
    data: Symbol | None = ...,
    alpha: float = ...,
    beta: float = ...,
    knorm: float = ...,
    nsize: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LayerNorm(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    beta: Symbol | None = ...,
    axis: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LeakyReLU(
    data: Symbol | None = ...,
    gamma: Symbol | None = ...,
    act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = ...,
    slope: float = ...,
    lower_bound: float = ...,
    upper_bound: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LinearRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def LogisticRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def MAERegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def MakeLoss(
    data: Symbol | None = ...,
    grad_scale: float = ...,
    valid_thresh: float = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Pad(
    data: Symbol | None = ...,
    mode: Literal['constant', 'edge', 'reflect'] = ...,
    pad_width: int | Sequence[int | None] = ...,
    constant_value: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Pooling(
    data: Symbol | None = ...,
    kernel: int | Sequence[int | None] = ...,
    pool_type: Literal['avg', 'lp', 'max', 'sum'] = ...,
    global_pool: bool = ...,
    cudnn_off: bool = ...,
    pooling_convention: Literal['full', 'same', 'valid'] = ...,
    stride: int | Sequence[int | None] = ...,
    pad: int | Sequence[int | None] = ...,
    p_value: int | None = ...,
    count_include_pad: bool | None = ...,
    layout: Literal[None, 'NCDHW', 'NCHW', 'NCW', 'NDHWC', 'NHWC', 'NWC'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Reshape(
    data: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int | None] = ...,
    keep_highest: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SVMOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    margin: float = ...,
    regularization_coefficient: float = ...,
    use_linear: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SequenceLast(
    data: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SequenceMask(
    data: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
    use_sequence_length: bool = ...,
    value: float = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SequenceReverse(
    data: Symbol | None = ...,
    sequence_length: Symbol | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SliceChannel(
    data: Symbol | None = ...,
    num_outputs: int = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def Softmax(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SoftmaxActivation(
    data: Symbol | None = ...,
    mode: Literal['channel', 'instance'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SoftmaxOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def SwapAxis(
    data: Symbol | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def abs(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def add_n(
    *data: Symbol,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def amp_cast(
    data: Symbol | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arccos(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arccosh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arcsin(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arcsinh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arctan(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def arctanh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def argmax(
    data: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def argmax_channel(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def argmin(
    data: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def argsort(
    data: Symbol | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def batch_dot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal[None, 'csr', 'default', 'row_sparse'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def batch_take(
    a: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_axes(
    data: Symbol | None = ...,
    axis: int | Sequence[int | None] = ...,
    size: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int | None] = ...,
    size: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_greater(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_greater_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_hypot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_lesser(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_lesser_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_like(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    lhs_axes: int | Sequence[int] | None = ...,
    rhs_axes: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_logical_and(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_logical_or(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_logical_xor(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_maximum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_minimum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_minus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_mod(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_not_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_plus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_power(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def broadcast_to(
    data: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cast(
    data: Symbol | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cbrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def ceil(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def choose_element_0index(
    data: Symbol | None = ...,
    index: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def clip(
    data: Symbol | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def concat(
    *data: Symbol,
    dim: int = ...,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cos(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cosh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def crop(
    data: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def cumsum(
    a: Symbol | None = ...,
    axis: int | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def degrees(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def depth_to_space(
    data: Symbol | None = ...,
    block_size: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def diag(
    data: Symbol | None = ...,
    k: int = ...,
    axis1: int = ...,
    axis2: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def dot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal[None, 'csr', 'default', 'row_sparse'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def elemwise_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def erf(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def erfinv(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def exp(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def expand_dims(
    data: Symbol | None = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def expm1(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def fix(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def flatten(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def flip(
    data: Symbol | None = ...,
    axis: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def floor(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def gamma(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def gammaln(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def gather_nd(
    data: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def hard_sigmoid(
    data: Symbol | None = ...,
    alpha: float = ...,
    beta: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def identity(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def linalg_gemm(
    A: Symbol | None = ...,
    B: Symbol | None = ...,
    C: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    beta: float = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def linalg_gemm2(
    A: Symbol | None = ...,
    B: Symbol | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log10(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log1p(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log2(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def log_softmax(
    data: Symbol | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: Any = ...,
    use_length: bool | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def logical_not(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def make_loss(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def max(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def max_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def mean(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def min(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def min_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def moments(
    data: Symbol | None = ...,
    axes: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def nanprod(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def nansum(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def negative(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def norm(
    data: Symbol | None = ...,
    ord: int = ...,
    axis: int | Sequence[int] | None = ...,
    out_dtype: Any = ...,
    keepdims: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def one_hot(
    indices: Symbol | None = ...,
    depth: int = ...,
    on_value: float = ...,
    off_value: float = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def ones_like(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def pad(
    data: Symbol | None = ...,
    mode: Literal['constant', 'edge', 'reflect'] = ...,
    pad_width: int | Sequence[int | None] = ...,
    constant_value: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def pick(
    data: Symbol | None = ...,
    index: Symbol | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def prod(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def radians(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_exponential(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_gamma(
    alpha: float = ...,
    beta: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_generalized_negative_binomial(
    mu: float = ...,
    alpha: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_negative_binomial(
    k: int = ...,
    p: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_poisson(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_randint(
    low: int = ...,
    high: int = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def random_uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def ravel_multi_index(
    data: Symbol | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def rcbrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def reciprocal(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def relu(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def repeat(
    data: Symbol | None = ...,
    repeats: int = ...,
    axis: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def reshape(
    data: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int | None] = ...,
    keep_highest: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def reshape_like(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    lhs_begin: int | None = ...,
    lhs_end: int | None = ...,
    rhs_begin: int | None = ...,
    rhs_end: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def reverse(
    data: Symbol | None = ...,
    axis: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def rint(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def round(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def rsqrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_exponential(
    lam: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_gamma(
    alpha: Symbol | None = ...,
    beta: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_generalized_negative_binomial(
    mu: Symbol | None = ...,
    alpha: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_multinomial(
    data: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    get_prob: bool = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_negative_binomial(
    k: Symbol | None = ...,
    p: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_normal(
    mu: Symbol | None = ...,
    sigma: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_poisson(
    lam: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sample_uniform(
    low: Symbol | None = ...,
    high: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def scatter_nd(
    data: Symbol | None = ...,
    indices: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def shape_array(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def shuffle(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sigmoid(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sign(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sin(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sinh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def size_array(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def slice(
    data: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def slice_axis(
    data: Symbol | None = ...,
    axis: int = ...,
    begin: int = ...,
    end: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def slice_like(
    data: Symbol | None = ...,
    shape_like: Symbol | None = ...,
    axes: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def smooth_l1(
    data: Symbol | None = ...,
    scalar: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def softmax(
    data: Symbol | None = ...,
    length: Symbol | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: Any = ...,
    use_length: bool | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def softmax_cross_entropy(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def softmin(
    data: Symbol | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: Any = ...,
    use_length: bool | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def softsign(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sort(
    data: Symbol | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def space_to_depth(
    data: Symbol | None = ...,
    block_size: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def split(
    data: Symbol | None = ...,
    num_outputs: int = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sqrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def square(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def squeeze(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def stack(
    *data: Symbol,
    axis: int = ...,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def stop_gradient(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sum(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def sum_axis(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def swapaxes(
    data: Symbol | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def take(
    a: Symbol | None = ...,
    indices: Symbol | None = ...,
    axis: int = ...,
    mode: Literal['clip', 'raise', 'wrap'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def tan(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def tanh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def tile(
    data: Symbol | None = ...,
    reps: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def topk(
    data: Symbol | None = ...,
    axis: int | None = ...,
    k: int = ...,
    ret_typ: Literal['both', 'indices', 'mask', 'value'] = ...,
    is_ascend: bool = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def transpose(
    data: Symbol | None = ...,
    axes: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def trunc(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def unravel_index(
    data: Symbol | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def where(
    condition: Symbol | None = ...,
    x: Symbol | None = ...,
    y: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def zeros_like(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
