"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

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
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _DivScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _EqualScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Greater(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _GreaterEqualScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _GreaterScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Greater_Equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Hypot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _HypotScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Lesser(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _LesserEqualScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _LesserScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Lesser_Equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _LogicalAndScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _LogicalOrScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _LogicalXorScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Logical_And(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Logical_Or(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Logical_Xor(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Maximum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _MaximumScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Minimum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _MinimumScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Minus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _MinusScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Mod(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _ModScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _MulScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _NotEqualScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Not_Equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Plus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _PlusScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _Power(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _PowerScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _RDivScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _RMinusScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _RModScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _RPowerScalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _arange(
    start: float = ...,
    stop: float | None = ...,
    step: float = ...,
    repeat: int = ...,
    infer_range: bool = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_BatchNormWithReLU(
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
def _contrib_SyncBatchNorm(
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
    ndev: int = ...,
    key: str = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_arange_like(
    data: Symbol | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: Any = ...,
    axis: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_div_sqrt_dim(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_index_array(
    data: Symbol | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_index_copy(
    old_tensor: Symbol | None = ...,
    index_vector: Symbol | None = ...,
    new_tensor: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_interleaved_matmul_encdec_qk(
    queries: Symbol | None = ...,
    keys_values: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_interleaved_matmul_encdec_valatt(
    keys_values: Symbol | None = ...,
    attention: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_interleaved_matmul_selfatt_qk(
    queries_keys_values: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_interleaved_matmul_selfatt_valatt(
    queries_keys_values: Symbol | None = ...,
    attention: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _contrib_quadratic(
    data: Symbol | None = ...,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _copy(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _copyto(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _crop_assign(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _crop_assign_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _div_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _equal_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _eye(
    N: int = ...,
    M: int = ...,
    k: int = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _full(
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    value: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _grad_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _greater(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _greater_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _greater_equal_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _greater_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _hypot(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _hypot_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _identity_with_attr_like_rhs(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _lesser(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _lesser_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _lesser_equal_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _lesser_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _linalg_gemm(
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
def _linalg_gemm2(
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
def _linspace(
    start: float = ...,
    stop: float = ...,
    num: int = ...,
    endpoint: bool = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _logical_and(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _logical_and_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _logical_or(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _logical_or_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _logical_xor(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _logical_xor_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _maximum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _maximum_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _minimum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _minimum_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _minus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _minus_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _mod(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _mod_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _mul_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _not_equal(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _not_equal_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _np_cumsum(
    a: Symbol | None = ...,
    axis: int | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _np_repeat(
    data: Symbol | None = ...,
    repeats: int = ...,
    axis: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_argsort(
    data: Symbol | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_cast(
    data: Symbol | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_clip(
    data: Symbol | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_copyto(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_expand_dims(
    data: Symbol | None = ...,
    axis: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_full(
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    value: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_gather_nd(
    data: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_hypot_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_linspace(
    start: float = ...,
    stop: float = ...,
    num: int = ...,
    endpoint: bool = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_maximum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_maximum_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_minimum(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_minimum_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_random_randint(
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
def _npi_scatter_set_nd(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    indices: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_shuffle(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_slice(
    data: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_slice_assign(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_slice_assign_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_sort(
    data: Symbol | None = ...,
    axis: int | None = ...,
    is_ascend: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_split(
    data: Symbol | None = ...,
    indices: int | Sequence[int | None] = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    sections: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_swapaxes(
    data: Symbol | None = ...,
    dim1: int = ...,
    dim2: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_take(
    a: Symbol | None = ...,
    indices: Symbol | None = ...,
    axis: int = ...,
    mode: Literal['clip', 'raise', 'wrap'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npi_tile(
    data: Symbol | None = ...,
    reps: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_activation(
    data: Symbol | None = ...,
    act_type: Literal['relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_arange_like(
    data: Symbol | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: Any = ...,
    axis: int | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_batch_dot(
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
def _npx_batch_flatten(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_batch_norm(
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
def _npx_cast(
    data: Symbol | None = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_convolution(
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
def _npx_deconvolution(
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
def _npx_dropout(
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
def _npx_embedding(
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
def _npx_erf(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_erfinv(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_fully_connected(
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
def _npx_gamma(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_gammaln(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_gather_nd(
    data: Symbol | None = ...,
    indices: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_layer_norm(
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
def _npx_leaky_relu(
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
def _npx_log_softmax(
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
def _npx_one_hot(
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
def _npx_pick(
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
def _npx_pooling(
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
def _npx_reshape_like(
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
def _npx_sequence_mask(
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
def _npx_shape_array(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_slice(
    data: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_smooth_l1(
    data: Symbol | None = ...,
    scalar: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _npx_softmax(
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
def _npx_topk(
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
def _ones(
    shape: int | Sequence[int | None] = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _plus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _plus_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _power(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _power_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _random_exponential(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _random_gamma(
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
def _random_generalized_negative_binomial(
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
def _random_negative_binomial(
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
def _random_normal(
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
def _random_normal_like(
    data: Symbol | None = ...,
    loc: float = ...,
    scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _random_poisson(
    lam: float = ...,
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _random_randint(
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
def _random_uniform(
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
def _random_uniform_like(
    data: Symbol | None = ...,
    low: float = ...,
    high: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _ravel_multi_index(
    data: Symbol | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _rdiv_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _rminus_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _rmod_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _rpower_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_exponential(
    lam: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_gamma(
    alpha: Symbol | None = ...,
    beta: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_generalized_negative_binomial(
    mu: Symbol | None = ...,
    alpha: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_multinomial(
    data: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    get_prob: bool = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_negative_binomial(
    k: Symbol | None = ...,
    p: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_normal(
    mu: Symbol | None = ...,
    sigma: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_poisson(
    lam: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sample_uniform(
    low: Symbol | None = ...,
    high: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _scatter_set_nd(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    indices: Symbol | None = ...,
    shape: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _shuffle(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _slice_assign(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _slice_assign_scalar(
    data: Symbol | None = ...,
    scalar: float = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_ElementWiseSum(
    *data: Symbol,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_Embedding(
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
def _sparse_FullyConnected(
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
def _sparse_LinearRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_LogisticRegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_MAERegressionOutput(
    data: Symbol | None = ...,
    label: Symbol | None = ...,
    grad_scale: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_abs(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_add_n(
    *data: Symbol,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_arccos(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_arccosh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_arcsin(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_arcsinh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_arctan(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_arctanh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_broadcast_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_broadcast_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_broadcast_minus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_broadcast_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_broadcast_plus(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_broadcast_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_cbrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_ceil(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_clip(
    data: Symbol | None = ...,
    a_min: float = ...,
    a_max: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_concat(
    *data: Symbol,
    dim: int = ...,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_cos(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_cosh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_degrees(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_dot(
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
def _sparse_elemwise_add(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_elemwise_div(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_elemwise_mul(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_elemwise_sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_exp(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_expm1(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_fix(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_floor(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_gamma(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_gammaln(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_log(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_log10(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_log1p(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_log2(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_make_loss(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_mean(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_negative(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_norm(
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
def _sparse_radians(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_relu(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_rint(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_round(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_rsqrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_sigmoid(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_sign(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_sin(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_sinh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_slice(
    data: Symbol | None = ...,
    begin: int | Sequence[int | None] = ...,
    end: int | Sequence[int | None] = ...,
    step: int | Sequence[int | None] = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_sqrt(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_square(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_stop_gradient(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_sum(
    data: Symbol | None = ...,
    axis: int | Sequence[int] | None = ...,
    keepdims: bool = ...,
    exclude: bool = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_tan(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_tanh(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_trunc(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_where(
    condition: Symbol | None = ...,
    x: Symbol | None = ...,
    y: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sparse_zeros_like(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _split_v2(
    data: Symbol | None = ...,
    indices: int | Sequence[int | None] = ...,
    axis: int = ...,
    squeeze_axis: bool = ...,
    sections: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _sub(
    lhs: Symbol | None = ...,
    rhs: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _unravel_index(
    data: Symbol | None = ...,
    shape: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _zeros(
    shape: int | Sequence[int | None] = ...,
    ctx: Any = ...,
    dtype: Any = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def _zeros_without_dtype(
    shape: int | Sequence[int] | None = ...,
    ctx: Any = ...,
    dtype: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
