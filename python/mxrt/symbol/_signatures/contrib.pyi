"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..symbol import Symbol

# ruff: noqa
# fmt: off

__all__ = [
    "BatchNormWithReLU",
    "SyncBatchNorm",
    "arange_like",
    "div_sqrt_dim",
    "index_array",
    "index_copy",
    "interleaved_matmul_encdec_qk",
    "interleaved_matmul_encdec_valatt",
    "interleaved_matmul_selfatt_qk",
    "interleaved_matmul_selfatt_valatt",
    "quadratic",
]

def BatchNormWithReLU(
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
def SyncBatchNorm(
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
def arange_like(
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
def div_sqrt_dim(
    data: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def index_array(
    data: Symbol | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def index_copy(
    old_tensor: Symbol | None = ...,
    index_vector: Symbol | None = ...,
    new_tensor: Symbol | None = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def interleaved_matmul_encdec_qk(
    queries: Symbol | None = ...,
    keys_values: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def interleaved_matmul_encdec_valatt(
    keys_values: Symbol | None = ...,
    attention: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def interleaved_matmul_selfatt_qk(
    queries_keys_values: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Symbol | None = ...,
    attention: Symbol | None = ...,
    heads: int = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
def quadratic(
    data: Symbol | None = ...,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    name: Any = ...,
    attr: Any = ...,
    **kwargs: Any,
) -> Symbol: ...
