"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

# ruff: noqa
# fmt: off

__all__ = [
    "_CrossDeviceCopy",
    "_Div",
    "_DivScalar",
    "_Equal",
    "_EqualScalar",
    "_Greater",
    "_GreaterEqualScalar",
    "_GreaterScalar",
    "_Greater_Equal",
    "_Hypot",
    "_HypotScalar",
    "_Lesser",
    "_LesserEqualScalar",
    "_LesserScalar",
    "_Lesser_Equal",
    "_LogicalAndScalar",
    "_LogicalOrScalar",
    "_LogicalXorScalar",
    "_Logical_And",
    "_Logical_Or",
    "_Logical_Xor",
    "_Maximum",
    "_MaximumScalar",
    "_Minimum",
    "_MinimumScalar",
    "_Minus",
    "_MinusScalar",
    "_Mod",
    "_ModScalar",
    "_Mul",
    "_MulScalar",
    "_NotEqualScalar",
    "_Not_Equal",
    "_Plus",
    "_PlusScalar",
    "_Power",
    "_PowerScalar",
    "_RDivScalar",
    "_RMinusScalar",
    "_RModScalar",
    "_RPowerScalar",
    "_add",
    "_arange",
    "_contrib_BatchNormWithReLU",
    "_contrib_SyncBatchNorm",
    "_contrib_arange_like",
    "_contrib_div_sqrt_dim",
    "_contrib_index_array",
    "_contrib_index_copy",
    "_contrib_interleaved_matmul_encdec_qk",
    "_contrib_interleaved_matmul_encdec_valatt",
    "_contrib_interleaved_matmul_selfatt_qk",
    "_contrib_interleaved_matmul_selfatt_valatt",
    "_contrib_quadratic",
    "_copy",
    "_copyto",
    "_crop_assign",
    "_crop_assign_scalar",
    "_div",
    "_div_scalar",
    "_equal",
    "_equal_scalar",
    "_eye",
    "_full",
    "_grad_add",
    "_greater",
    "_greater_equal",
    "_greater_equal_scalar",
    "_greater_scalar",
    "_hypot",
    "_hypot_scalar",
    "_identity_with_attr_like_rhs",
    "_lesser",
    "_lesser_equal",
    "_lesser_equal_scalar",
    "_lesser_scalar",
    "_linalg_gemm",
    "_linalg_gemm2",
    "_linspace",
    "_logical_and",
    "_logical_and_scalar",
    "_logical_or",
    "_logical_or_scalar",
    "_logical_xor",
    "_logical_xor_scalar",
    "_maximum",
    "_maximum_scalar",
    "_minimum",
    "_minimum_scalar",
    "_minus",
    "_minus_scalar",
    "_mod",
    "_mod_scalar",
    "_mul",
    "_mul_scalar",
    "_not_equal",
    "_not_equal_scalar",
    "_np_cumsum",
    "_np_repeat",
    "_npi_argsort",
    "_npi_cast",
    "_npi_clip",
    "_npi_copyto",
    "_npi_expand_dims",
    "_npi_full",
    "_npi_gather_nd",
    "_npi_hypot_scalar",
    "_npi_linspace",
    "_npi_maximum",
    "_npi_maximum_scalar",
    "_npi_minimum",
    "_npi_minimum_scalar",
    "_npi_random_randint",
    "_npi_scatter_set_nd",
    "_npi_shuffle",
    "_npi_slice",
    "_npi_slice_assign",
    "_npi_slice_assign_scalar",
    "_npi_sort",
    "_npi_split",
    "_npi_swapaxes",
    "_npi_take",
    "_npi_tile",
    "_npx_activation",
    "_npx_arange_like",
    "_npx_batch_dot",
    "_npx_batch_flatten",
    "_npx_batch_norm",
    "_npx_cast",
    "_npx_convolution",
    "_npx_deconvolution",
    "_npx_dropout",
    "_npx_embedding",
    "_npx_erf",
    "_npx_erfinv",
    "_npx_fully_connected",
    "_npx_gamma",
    "_npx_gammaln",
    "_npx_gather_nd",
    "_npx_layer_norm",
    "_npx_leaky_relu",
    "_npx_log_softmax",
    "_npx_one_hot",
    "_npx_pick",
    "_npx_pooling",
    "_npx_reshape_like",
    "_npx_sequence_mask",
    "_npx_shape_array",
    "_npx_slice",
    "_npx_smooth_l1",
    "_npx_softmax",
    "_npx_topk",
    "_ones",
    "_plus",
    "_plus_scalar",
    "_power",
    "_power_scalar",
    "_random_exponential",
    "_random_gamma",
    "_random_generalized_negative_binomial",
    "_random_negative_binomial",
    "_random_normal",
    "_random_normal_like",
    "_random_poisson",
    "_random_randint",
    "_random_uniform",
    "_random_uniform_like",
    "_ravel_multi_index",
    "_rdiv_scalar",
    "_rminus_scalar",
    "_rmod_scalar",
    "_rpower_scalar",
    "_sample_exponential",
    "_sample_gamma",
    "_sample_generalized_negative_binomial",
    "_sample_multinomial",
    "_sample_negative_binomial",
    "_sample_normal",
    "_sample_poisson",
    "_sample_uniform",
    "_scatter_set_nd",
    "_shuffle",
    "_slice_assign",
    "_slice_assign_scalar",
    "_sparse_ElementWiseSum",
    "_sparse_Embedding",
    "_sparse_FullyConnected",
    "_sparse_LinearRegressionOutput",
    "_sparse_LogisticRegressionOutput",
    "_sparse_MAERegressionOutput",
    "_sparse_abs",
    "_sparse_add_n",
    "_sparse_arccos",
    "_sparse_arccosh",
    "_sparse_arcsin",
    "_sparse_arcsinh",
    "_sparse_arctan",
    "_sparse_arctanh",
    "_sparse_broadcast_add",
    "_sparse_broadcast_div",
    "_sparse_broadcast_minus",
    "_sparse_broadcast_mul",
    "_sparse_broadcast_plus",
    "_sparse_broadcast_sub",
    "_sparse_cbrt",
    "_sparse_ceil",
    "_sparse_clip",
    "_sparse_concat",
    "_sparse_cos",
    "_sparse_cosh",
    "_sparse_degrees",
    "_sparse_dot",
    "_sparse_elemwise_add",
    "_sparse_elemwise_div",
    "_sparse_elemwise_mul",
    "_sparse_elemwise_sub",
    "_sparse_exp",
    "_sparse_expm1",
    "_sparse_fix",
    "_sparse_floor",
    "_sparse_gamma",
    "_sparse_gammaln",
    "_sparse_log",
    "_sparse_log10",
    "_sparse_log1p",
    "_sparse_log2",
    "_sparse_make_loss",
    "_sparse_mean",
    "_sparse_negative",
    "_sparse_norm",
    "_sparse_radians",
    "_sparse_relu",
    "_sparse_rint",
    "_sparse_round",
    "_sparse_rsqrt",
    "_sparse_sigmoid",
    "_sparse_sign",
    "_sparse_sin",
    "_sparse_sinh",
    "_sparse_slice",
    "_sparse_sqrt",
    "_sparse_square",
    "_sparse_stop_gradient",
    "_sparse_sum",
    "_sparse_tan",
    "_sparse_tanh",
    "_sparse_trunc",
    "_sparse_where",
    "_sparse_zeros_like",
    "_split_v2",
    "_sub",
    "_unravel_index",
    "_zeros",
    "_zeros_without_dtype",
]

def _CrossDeviceCopy(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _DivScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _EqualScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Greater(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _GreaterEqualScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _GreaterScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Greater_Equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Hypot(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _HypotScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Lesser(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _LesserEqualScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _LesserScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Lesser_Equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _LogicalAndScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _LogicalOrScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _LogicalXorScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Logical_And(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Logical_Or(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Logical_Xor(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Maximum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _MaximumScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Minimum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _MinimumScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Minus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _MinusScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Mod(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _ModScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _MulScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _NotEqualScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Not_Equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Plus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _PlusScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _Power(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _PowerScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _RDivScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _RMinusScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _RModScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _RPowerScalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _arange(
    start: float = ...,
    stop: float | None = ...,
    step: float = ...,
    repeat: int = ...,
    infer_range: bool = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_BatchNormWithReLU(
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
def _contrib_SyncBatchNorm(
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
    ndev: int = ...,
    key: str = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def _contrib_arange_like(
    data: NDArray | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: Any = ...,
    axis: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_div_sqrt_dim(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_index_array(
    data: NDArray | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_index_copy(
    old_tensor: NDArray | None = ...,
    index_vector: NDArray | None = ...,
    new_tensor: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_interleaved_matmul_encdec_qk(
    queries: NDArray | None = ...,
    keys_values: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_interleaved_matmul_encdec_valatt(
    keys_values: NDArray | None = ...,
    attention: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_interleaved_matmul_selfatt_qk(
    queries_keys_values: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_interleaved_matmul_selfatt_valatt(
    queries_keys_values: NDArray | None = ...,
    attention: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _contrib_quadratic(
    data: NDArray | None = ...,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _copy(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _copyto(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _crop_assign(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _crop_assign_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _div_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _equal_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _eye(
    N: int = ...,
    M: int = ...,
    k: int = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _full(
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    value: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _grad_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _greater(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _greater_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _greater_equal_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _greater_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _hypot(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _hypot_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _identity_with_attr_like_rhs(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _lesser(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _lesser_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _lesser_equal_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _lesser_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _linalg_gemm(
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
def _linalg_gemm2(
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
def _linspace(
    start: float = ...,
    stop: float = ...,
    num: int = ...,
    endpoint: bool = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _logical_and(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _logical_and_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _logical_or(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _logical_or_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _logical_xor(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _logical_xor_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _maximum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _maximum_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _minimum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _minimum_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _minus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _minus_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _mod(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _mod_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _mul_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _not_equal(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _not_equal_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _np_cumsum(
    a: NDArray | None = ...,
    axis: int | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _np_repeat(
    data: NDArray | None = ...,
    repeats: int = ...,
    axis: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_argsort(
    data: NDArray | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_cast(
    data: NDArray | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_clip(
    data: NDArray | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_copyto(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_expand_dims(
    data: NDArray | None = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_full(
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    value: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_gather_nd(
    data: NDArray | None = ...,
    indices: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_hypot_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_linspace(
    start: float = ...,
    stop: float = ...,
    num: int = ...,
    endpoint: bool = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_maximum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_maximum_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_minimum(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_minimum_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_random_randint(
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
def _npi_scatter_set_nd(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    indices: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_shuffle(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_slice(
    data: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_slice_assign(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_slice_assign_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_sort(
    data: NDArray | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def _npi_split(
    data: NDArray | None = ...,
    indices: int | Sequence[int | None] = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    sections: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def _npi_swapaxes(
    data: NDArray | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_take(
    a: NDArray | None = ...,
    indices: NDArray | None = ...,
    axis: int = ...,
    mode: Literal['clip', 'raise', 'wrap'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npi_tile(
    data: NDArray | None = ...,
    reps: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_activation(
    data: NDArray | None = ...,
    act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_arange_like(
    data: NDArray | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: Any = ...,
    axis: int | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_batch_dot(
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
def _npx_batch_flatten(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_batch_norm(
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
def _npx_cast(
    data: NDArray | None = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_convolution(
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
def _npx_deconvolution(
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
def _npx_dropout(
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
def _npx_embedding(
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
def _npx_erf(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_erfinv(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_fully_connected(
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
def _npx_gamma(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_gammaln(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_gather_nd(
    data: NDArray | None = ...,
    indices: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_layer_norm(
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
def _npx_leaky_relu(
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
def _npx_log_softmax(
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
def _npx_one_hot(
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
def _npx_pick(
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
def _npx_pooling(
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
def _npx_reshape_like(
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
def _npx_sequence_mask(
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
def _npx_shape_array(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_slice(
    data: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_smooth_l1(
    data: NDArray | None = ...,
    scalar: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _npx_softmax(
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
def _npx_topk(
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
def _ones(
    shape: int | Sequence[int | None] = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _plus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _plus_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _power(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _power_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _random_exponential(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _random_gamma(
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
def _random_generalized_negative_binomial(
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
def _random_negative_binomial(
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
def _random_normal(
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
def _random_normal_like(
    data: NDArray | None = ...,
    loc: float = ...,
    scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _random_poisson(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _random_randint(
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
def _random_uniform(
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
def _random_uniform_like(
    data: NDArray | None = ...,
    low: float = ...,
    high: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _ravel_multi_index(
    data: NDArray | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _rdiv_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _rminus_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _rmod_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _rpower_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_exponential(
    lam: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_gamma(
    alpha: NDArray | None = ...,
    beta: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_generalized_negative_binomial(
    mu: NDArray | None = ...,
    alpha: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_multinomial(
    data: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    get_prob: bool = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def _sample_negative_binomial(
    k: NDArray | None = ...,
    p: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_normal(
    mu: NDArray | None = ...,
    sigma: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_poisson(
    lam: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sample_uniform(
    low: NDArray | None = ...,
    high: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _scatter_set_nd(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    indices: NDArray | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _shuffle(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _slice_assign(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _slice_assign_scalar(
    data: NDArray | None = ...,
    scalar: float = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_ElementWiseSum(
    *data: NDArray,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_Embedding(
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
def _sparse_FullyConnected(
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
def _sparse_LinearRegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_LogisticRegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_MAERegressionOutput(
    data: NDArray | None = ...,
    label: NDArray | None = ...,
    grad_scale: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_abs(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_add_n(
    *data: NDArray,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_arccos(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_arccosh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_arcsin(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_arcsinh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_arctan(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_arctanh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_broadcast_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_broadcast_div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_broadcast_minus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_broadcast_mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_broadcast_plus(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_broadcast_sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_cbrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_ceil(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_clip(
    data: NDArray | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_concat(
    *data: NDArray,
    dim: int = ...,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_cos(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_cosh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_degrees(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_dot(
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
def _sparse_elemwise_add(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_elemwise_div(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_elemwise_mul(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_elemwise_sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_exp(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_expm1(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_fix(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_floor(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_gamma(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_gammaln(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_log(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_log10(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_log1p(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_log2(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_make_loss(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def _sparse_mean(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_negative(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_norm(
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
def _sparse_radians(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_relu(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_rint(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_round(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_rsqrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_sigmoid(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_sign(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_sin(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_sinh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_slice(
    data: NDArray | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_sqrt(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_square(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_stop_gradient(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_sum(
    data: NDArray | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_tan(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_tanh(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_trunc(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_where(
    condition: NDArray | None = ...,
    x: NDArray | None = ...,
    y: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _sparse_zeros_like(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _split_v2(
    data: NDArray | None = ...,
    indices: int | Sequence[int | None] = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    sections: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> Any: ...
def _sub(
    lhs: NDArray | None = ...,
    rhs: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _unravel_index(
    data: NDArray | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _zeros(
    shape: int | Sequence[int | None] = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def _zeros_without_dtype(
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
