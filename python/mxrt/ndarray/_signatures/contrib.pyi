"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from ..ndarray import NDArray

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
def SyncBatchNorm(
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
def arange_like(
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
def div_sqrt_dim(
    data: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def index_array(
    data: NDArray | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def index_copy(
    old_tensor: NDArray | None = ...,
    index_vector: NDArray | None = ...,
    new_tensor: NDArray | None = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def interleaved_matmul_encdec_qk(
    queries: NDArray | None = ...,
    keys_values: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def interleaved_matmul_encdec_valatt(
    keys_values: NDArray | None = ...,
    attention: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def interleaved_matmul_selfatt_qk(
    queries_keys_values: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: NDArray | None = ...,
    attention: NDArray | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
def quadratic(
    data: NDArray | None = ...,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    out: Any = ...,
    name: Any = ...,
    **kwargs: Any,
) -> NDArray: ...
