"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from ..ndarray import NDArray
from ..symbol import Symbol

# ruff: noqa
# fmt: off

T = TypeVar("T", NDArray, Symbol)

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

def BatchNormWithReLU(data: T | None = ..., gamma: T | None = ..., beta: T | None = ..., moving_mean: T | None = ..., moving_var: T | None = ..., eps: float = ..., momentum: float = ..., fix_gamma: bool = ..., use_global_stats: bool = ..., output_mean_var: bool = ..., axis: int = ..., cudnn_off: bool = ..., min_calib_range: float | None = ..., max_calib_range: float | None = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> Any: ...
def SyncBatchNorm(data: T | None = ..., gamma: T | None = ..., beta: T | None = ..., moving_mean: T | None = ..., moving_var: T | None = ..., eps: float = ..., momentum: float = ..., fix_gamma: bool = ..., use_global_stats: bool = ..., output_mean_var: bool = ..., ndev: int = ..., key: str = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> Any: ...
def arange_like(data: T | None = ..., start: float = ..., step: float = ..., repeat: int = ..., ctx: Any = ..., axis: int | None = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def div_sqrt_dim(data: T | None = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def index_array(data: T | None = ..., axes: int | Sequence[int] | None = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def index_copy(old_tensor: T | None = ..., index_vector: T | None = ..., new_tensor: T | None = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def interleaved_matmul_encdec_qk(queries: T | None = ..., keys_values: T | None = ..., heads: int = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def interleaved_matmul_encdec_valatt(keys_values: T | None = ..., attention: T | None = ..., heads: int = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def interleaved_matmul_selfatt_qk(queries_keys_values: T | None = ..., heads: int = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def interleaved_matmul_selfatt_valatt(queries_keys_values: T | None = ..., attention: T | None = ..., heads: int = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
def quadratic(data: T | None = ..., a: float = ..., b: float = ..., c: float = ..., *, out: Any = ..., name: Any = ..., attr: Any = ..., **kwargs: Any) -> T: ...
