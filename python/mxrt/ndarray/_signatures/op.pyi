"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

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
    data: NDArray | None = ...,
    act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def BatchNorm(
    data: NDArray | None = ...,
    gamma: NDArray | None = ...,
    beta: NDArray | None = ...,
    moving_mean: NDArray | None = ...,
    moving_var: NDArray | None = ...,
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
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def BlockGrad(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Cast(
    data: NDArray | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Concat(
    *data: NDArray,
    dim: int = ...,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Convolution(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
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
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Crop(
    *data: NDArray,
    offset: int | Sequence[int | None] = ...,
    h_w: int | Sequence[int | None] = ...,
    center_crop: bool = ...,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Deconvolution(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
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
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Dropout(
    data: NDArray | None = ...,
    p: float = ...,
    mode: Literal['always', 'training'] = ...,
    axes: int | Sequence[int | None] = ...,
    cudnn_off: bool | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def ElementWiseSum(
    *data: NDArray,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Embedding(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    input_dim: int = ...,
    output_dim: int = ...,
    dtype: Any = ...,
    sparse_grad: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Flatten(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def FullyConnected(
    data: NDArray | None = ...,
    weight: NDArray | None = ...,
    bias: NDArray | None = ...,
    num_hidden: int = ...,
    no_bias: bool = ...,
    flatten: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def GroupNorm(
    data: NDArray | None = ...,
    gamma: NDArray | None = ...,
    beta: NDArray | None = ...,
    num_groups: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def InstanceNorm(
    data: NDArray | None = ...,
    gamma: NDArray | None = ...,
    beta: NDArray | None = ...,
    eps: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def L2Normalization(
    data: NDArray | None = ...,
    eps: float = ...,
    mode: Literal['channel', 'instance', 'spatial'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def LRN(
    data: NDArray | None = ...,
    alpha: float = ...,
    beta: float = ...,
    knorm: float = ...,
    nsize: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def LayerNorm(
    data: NDArray | None = ...,
    gamma: NDArray | None = ...,
    beta: NDArray | None = ...,
    axis: int = ...,
    eps: float = ...,
    output_mean_var: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def LeakyReLU(
    data: NDArray | None = ...,
    gamma: NDArray | None = ...,
    act_type: Literal['elu', 'gelu', 'leaky', 'prelu', 'rrelu', 'selu'] = ...,
    slope: float = ...,
    lower_bound: float = ...,
    upper_bound: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def LinearRegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def LogisticRegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def MAERegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def MakeLoss(
    data: NDArray | None = ...,
    grad_scale: float = ...,
    valid_thresh: float = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Pad(
    data: NDArray | None = ...,
    mode: Literal['constant', 'edge', 'reflect'] = ...,
    pad_width: int | Sequence[int | None] = ...,
    constant_value: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Pooling(
    data: NDArray | None = ...,
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
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def Reshape(
    data: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int | None] = ...,
    keep_highest: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SVMOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    margin: float = ...,
    regularization_coefficient: float = ...,
    use_linear: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SequenceLast(
    data: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SequenceMask(
    data: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    use_sequence_length: bool = ...,
    value: float = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SequenceReverse(
    data: NDArray | None = ...,
    sequence_length: NDArray | None = ...,
    use_sequence_length: bool = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SliceChannel(
    data: NDArray | None = ...,
    num_outputs: int = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def Softmax(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SoftmaxActivation(
    data: NDArray | None = ...,
    mode: Literal['channel', 'instance'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SoftmaxOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    ignore_label: float = ...,
    multi_output: bool = ...,
    use_ignore: bool = ...,
    preserve_shape: bool = ...,
    normalization: Literal['batch', 'null', 'valid'] = ...,
    out_grad: bool = ...,
    smooth_alpha: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def SwapAxis(
    data: NDArray | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def abs(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def add_n(
    *data: NDArray,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def amp_cast(
    data: NDArray | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arccos(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arccosh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arcsin(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arcsinh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arctan(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def arctanh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def argmax(
    data: NDArray | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def argmax_channel(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def argmin(
    data: NDArray | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def argsort(
    data: NDArray | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def batch_dot(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal[None, 'csr', 'default', 'row_sparse'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def batch_take(
    a: NDArray | None = ...,
    indices: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_axes(
    data: NDArray | None = ...,
    axis: int | Sequence[int | None] = ...,
    size: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_axis(
    data: NDArray | None = ...,
    axis: int | Sequence[int | None] = ...,
    size: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_greater(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_greater_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_hypot(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_lesser(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_lesser_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_like(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    lhs_axes: int | Sequence[int] | None = ...,
    rhs_axes: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_logical_and(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_logical_or(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_logical_xor(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_maximum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_minimum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_minus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_mod(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_not_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_plus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_power(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def broadcast_to(
    data: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cast(
    data: NDArray | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cbrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def ceil(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def choose_element_0index(
    data: NDArray | None = ...,
    index: NDArray | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def clip(
    data: NDArray | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def concat(
    *data: NDArray,
    dim: int = ...,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cos(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cosh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def crop(
    data: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def cumsum(
    a: NDArray | None = ...,
    axis: int | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def degrees(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def depth_to_space(
    data: NDArray | None = ...,
    block_size: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def diag(
    data: NDArray | None = ...,
    k: int = ...,
    axis1: int = ...,
    axis2: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def dot(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    forward_stype: Literal[None, 'csr', 'default', 'row_sparse'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def elemwise_sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def erf(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def erfinv(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def exp(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def expand_dims(
    data: NDArray | None = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def expm1(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def fix(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def flatten(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def flip(
    data: NDArray | None = ...,
    axis: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def floor(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def gamma(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def gammaln(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def gather_nd(
    data: NDArray | None = ...,
    indices: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def hard_sigmoid(
    data: NDArray | None = ...,
    alpha: float = ...,
    beta: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def identity(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def linalg_gemm(
    A: NDArray | None = ...,
    B: NDArray | None = ...,
    C: NDArray | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    beta: float = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def linalg_gemm2(
    A: NDArray | None = ...,
    B: NDArray | None = ...,
    transpose_a: bool = ...,
    transpose_b: bool = ...,
    alpha: float = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log10(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log1p(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log2(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def log_softmax(
    data: NDArray | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: Any = ...,
    use_length: bool | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def logical_not(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def make_loss(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def max(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def max_axis(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def mean(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def min(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def min_axis(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def moments(
    data: NDArray | None = ...,
    axes: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def nanprod(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def nansum(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def negative(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def norm(
    data: NDArray | None = ...,
    ord: int = ...,
    axis: int | Sequence[int] | None = ...,
    out_dtype: Any = ...,
    keepdims: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def one_hot(
    indices: NDArray | None = ...,
    depth: int = ...,
    on_value: float = ...,
    off_value: float = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def ones_like(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def pad(
    data: NDArray | None = ...,
    mode: Literal['constant', 'edge', 'reflect'] = ...,
    pad_width: int | Sequence[int | None] = ...,
    constant_value: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def pick(
    data: NDArray | None = ...,
    index: NDArray | None = ...,
    axis: int | None = ...,
    keepdims: bool = ...,
    mode: Literal['clip', 'wrap'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def prod(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def radians(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_exponential(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_gamma(
    alpha: float = ...,
    beta: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_generalized_negative_binomial(
    mu: float = ...,
    alpha: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_negative_binomial(
    k: int = ...,
    p: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_normal(
    loc: float = ...,
    scale: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_poisson(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_randint(
    low: int = ...,
    high: int = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def random_uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def ravel_multi_index(
    data: NDArray | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def rcbrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def reciprocal(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def relu(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def repeat(
    data: NDArray | None = ...,
    repeats: int = ...,
    axis: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def reshape(
    data: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    reverse: bool = ...,
    target_shape: int | Sequence[int | None] = ...,
    keep_highest: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def reshape_like(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    lhs_begin: int | None = ...,
    lhs_end: int | None = ...,
    rhs_begin: int | None = ...,
    rhs_end: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def reverse(
    data: NDArray | None = ...,
    axis: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def rint(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def round(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def rsqrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_exponential(
    lam: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_gamma(
    alpha: NDArray | None = ...,
    beta: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_generalized_negative_binomial(
    mu: NDArray | None = ...,
    alpha: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_multinomial(
    data: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    get_prob: bool = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def sample_negative_binomial(
    k: NDArray | None = ...,
    p: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_normal(
    mu: NDArray | None = ...,
    sigma: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_poisson(
    lam: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sample_uniform(
    low: NDArray | None = ...,
    high: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def scatter_nd(
    data: NDArray | None = ...,
    indices: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def shape_array(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def shuffle(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sigmoid(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sign(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sin(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sinh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def size_array(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def slice(
    data: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def slice_axis(
    data: NDArray | None = ...,
    axis: int = ...,
    begin: int = ...,
    end: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def slice_like(
    data: NDArray | None = ...,
    shape_like: NDArray | None = ...,
    axes: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def smooth_l1(
    data: NDArray | None = ...,
    scalar: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def softmax(
    data: NDArray | None = ...,
    length: NDArray | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: Any = ...,
    use_length: bool | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def softmax_cross_entropy(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def softmin(
    data: NDArray | None = ...,
    axis: int = ...,
    temperature: float | None = ...,
    dtype: Any = ...,
    use_length: bool | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def softsign(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sort(
    data: NDArray | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def space_to_depth(
    data: NDArray | None = ...,
    block_size: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def split(
    data: NDArray | None = ...,
    num_outputs: int = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def sqrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def square(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def squeeze(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def stack(
    *data: NDArray,
    axis: int = ...,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def stop_gradient(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sum(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def sum_axis(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def swapaxes(
    data: NDArray | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def take(
    a: NDArray | None = ...,
    indices: NDArray | None = ...,
    axis: int = ...,
    mode: Literal['clip', 'raise', 'wrap'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def tan(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def tanh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def tile(
    data: NDArray | None = ...,
    reps: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def topk(
    data: NDArray | None = ...,
    axis: int | None = ...,
    k: int = ...,
    ret_typ: Literal['both', 'indices', 'mask', 'value'] = ...,
    is_ascend: bool = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def transpose(
    data: NDArray | None = ...,
    axes: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def trunc(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def uniform(
    low: float = ...,
    high: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def unravel_index(
    data: NDArray | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def where(
    condition: NDArray | None = ...,
    x: NDArray | None = ...,
    y: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def zeros_like(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
