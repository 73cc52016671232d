"""Functions that MXNet's symbols compute in Python: nodes ``Custom`` of these names.

MXNet's files name them, and symbols made here are the same nodes.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as onp

from ..ndarray import NDArray
from ..ndarray import array as nd_array
from ..operator import CustomOp, CustomOpProp, register

__all__: list[str] = []


class _Computed(CustomOp):
    """An operator that a function of the inputs computes."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        made = self._function(*in_data)
        out = out_data[0]
        if not isinstance(made, NDArray):
            made = nd_array(made, ctx=out.context, dtype=out.dtype)
        self.assign(out, req[0], made)


def _extents(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


@register("empty_like_fallback")
class _EmptyLike(CustomOpProp):
    """``np.empty_like``: an array like another one. Its elements are zero."""

    def __init__(self, dtype: str = "None", order: str = "C", subok: str = "False", shape: str = "None") -> None:
        super().__init__()
        self._dtype = None if dtype == "None" else dtype

    def list_arguments(self) -> list[str]:
        return ["prototype"]

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        return in_shape, (in_shape[0],), ()

    def infer_type(self, in_type: list[Any]) -> tuple[Any, ...]:
        return in_type, (in_type[0] if self._dtype is None else onp.dtype(self._dtype).type,), ()

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        return _Computed(lambda prototype: onp.zeros(prototype.shape))


@register("resize_fallback")
class _Resize(CustomOpProp):
    """``np.resize``: an array of a shape of any size, filled with the elements, repeated."""

    def __init__(self, new_shape: str) -> None:
        super().__init__()
        self._shape = _extents(ast.literal_eval(new_shape))

    def list_arguments(self) -> list[str]:
        return ["a"]

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        return in_shape, (self._shape,), ()

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        return _Computed(lambda a: onp.resize(a.asnumpy(), self._shape))


@register("unravel_index_fallback")
class _UnravelIndex(CustomOpProp):
    """``np.unravel_index``: the indices along the axes of a shape, an axis of them first."""

    def __init__(self, shape: str) -> None:
        super().__init__()
        self._shape = ast.literal_eval(shape)

    def list_arguments(self) -> list[str]:
        return ["indices"]

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        return in_shape, ((len(_extents(self._shape)), *in_shape[0]),), ()

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        return _Computed(lambda indices: onp.stack(onp.unravel_index(indices.asnumpy(), self._shape)))


@register("mvn_fallback")
class _MultivariateNormal(CustomOpProp):
    """``np.random.multivariate_normal``."""

    def __init__(self, size: str = "None") -> None:
        super().__init__()
        self._size = ast.literal_eval(size)

    def list_arguments(self) -> list[str]:
        return ["mean", "cov"]

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        from .random import normal_vectors_shape

        mean, covariance = in_shape
        return in_shape, (normal_vectors_shape(mean, covariance, self._size),), ()

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        from .random import multivariate_normal

        def draw(mean: Any, cov: Any) -> Any:
            return multivariate_normal(mean.as_np_ndarray(), cov.as_np_ndarray(), self._size).as_nd_ndarray()

        return _Computed(draw)
