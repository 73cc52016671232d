"""Methods and operators of arrays of ``mx.np`` that are functions of ``mx.np``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ..ndarray import NDArray

__all__ = ["NumpyMethods"]

_PACKAGE = __name__.rpartition(".")[0]


class NumpyMethods(NDArray):
    """Methods that call the function of ``mx.np`` with the array as its first argument."""

    __slots__ = ()

    def _np(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(sys.modules[_PACKAGE], name)
        return found

    def _by_np(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._np(name)(self, *args, **kwargs)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:  # type: ignore[override]
        """Whether all elements, or those along an axis, are not 0."""
        return self._by_np("all", axis=axis, keepdims=keepdims, out=out)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:  # type: ignore[override]
        """Whether some element, or one along an axis, is not 0."""
        return self._by_np("any", axis=axis, keepdims=keepdims, out=out)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The sum, over all axes or the given ones."""
        return self._by_np("sum", axis=axis, dtype=dtype, keepdims=keepdims, out=out)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The product, over all axes or the given ones."""
        return self._by_np("prod", axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The mean, over all axes or the given ones."""
        return self._by_np("mean", axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """The standard deviation, over all axes or the given ones."""
        return self._by_np("std", axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """The variance, over all axes or the given ones."""
        return self._by_np("var", axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The largest element, over all axes or the given ones."""
        return self._by_np("max", axis=axis, out=out, keepdims=keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The smallest element, over all axes or the given ones."""
        return self._by_np("min", axis=axis, out=out, keepdims=keepdims)

    def argmax(self, axis: Any = None, out: Any = None) -> Any:
        """The index of the largest element."""
        return self._by_np("argmax", axis, out)

    def argmin(self, axis: Any = None, out: Any = None) -> Any:
        """The index of the smallest element."""
        return self._by_np("argmin", axis, out)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Sums of the elements so far."""
        return self._by_np("cumsum", axis=axis, dtype=dtype, out=out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """The elements limited to a range."""
        return self._by_np("clip", min, max, out=out)

    def round(self, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
        """The elements rounded to a number of decimals."""
        return self._by_np("round", decimals=decimals, out=out, **kwargs)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Each element several times."""
        return self._by_np("repeat", repeats, axis)

    def squeeze(self, axis: Any = None) -> Any:  # type: ignore[override]
        """Without axes of extent 1."""
        return self._by_np("squeeze", axis)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """A copy with two axes exchanged."""
        return self._by_np("swapaxes", axis1, axis2)

    def take(self, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
        """The elements at these indices."""
        return self._by_np("take", indices, axis, mode)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> NoReturn:
        """Refused, as in MXNet: NumPy sorts in place."""
        raise NotImplementedError("ndarray.sort: sorting in place is not supported; use mx.np.sort(x)")

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None) -> Any:
        """The indices that sort the array."""
        return self._by_np("argsort", axis=axis, kind=kind, order=order)

    def dot(self, b: Any, out: Any = None) -> Any:  # type: ignore[override]
        """The product with another array."""
        return self._by_np("dot", b, out=out)

    def nonzero(self) -> Any:
        """The indices of the elements that are not 0, an array for each axis."""
        return self._by_np("nonzero")

    # ---- operators -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self._np("add")(self, other)

    def __radd__(self, other: Any) -> Any:
        return self._np("add")(self, other)

    def __iadd__(self, other: Any) -> Any:
        return self._np("add")(self, other, out=self)

    def __sub__(self, other: Any) -> Any:
        return self._np("subtract")(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._np("subtract")(other, self)

    def __isub__(self, other: Any) -> Any:
        return self._np("subtract")(self, other, out=self)

    def __mul__(self, other: Any) -> Any:
        return self._np("multiply")(self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._np("multiply")(self, other)

    def __imul__(self, other: Any) -> Any:
        return self._np("multiply")(self, other, out=self)

    def __truediv__(self, other: Any) -> Any:
        return self._np("divide")(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._np("divide")(other, self)

    def __itruediv__(self, other: Any) -> Any:
        return self._np("divide")(self, other, out=self)

    def __mod__(self, other: Any) -> Any:
        return self._np("mod")(self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._np("mod")(other, self)

    def __imod__(self, other: Any) -> Any:
        return self._np("mod")(self, other, out=self)

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        return self._np("power")(self, other)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        return self._np("power")(other, self)

    def __ipow__(self, other: Any, modulo: Any = None) -> Any:
        return self._np("power")(self, other, out=self)

    def __matmul__(self, other: Any) -> Any:
        return self._np("matmul")(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._np("matmul")(other, self)

    def __imatmul__(self, other: Any) -> Any:
        return self._np("matmul")(self, other, out=self)

    def __and__(self, other: Any) -> Any:
        return self._np("bitwise_and")(self, other)

    __rand__ = __and__

    def __iand__(self, other: Any) -> Any:
        return self._np("bitwise_and")(self, other, out=self)

    def __or__(self, other: Any) -> Any:
        return self._np("bitwise_or")(self, other)

    __ror__ = __or__

    def __ior__(self, other: Any) -> Any:
        return self._np("bitwise_or")(self, other, out=self)

    def __xor__(self, other: Any) -> Any:
        return self._np("bitwise_xor")(self, other)

    __rxor__ = __xor__

    def __ixor__(self, other: Any) -> Any:
        return self._np("bitwise_xor")(self, other, out=self)

    def __invert__(self) -> Any:
        return self._np("invert")(self)

    def __neg__(self) -> Any:
        # As in MXNet, and so of bool too.
        return self._np("multiply")(self, -1.0)

    def __abs__(self) -> Any:
        return self._np("absolute")(self)

    def __round__(self, n: int = 0) -> Any:
        return self._np("round")(self, n)

    def __ceil__(self) -> Any:
        return self._np("ceil")(self)

    def __floor__(self) -> Any:
        return self._np("floor")(self)

    def __trunc__(self) -> Any:
        return self._np("trunc")(self)

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'ndarray' of mx.np; use id(x), or x.as_nd_ndarray() as a key")

    def __eq__(self, other: object) -> Any:
        return self._np("equal")(self, other)

    def __ne__(self, other: object) -> Any:
        return self._np("not_equal")(self, other)

    def __lt__(self, other: Any) -> Any:
        return self._np("less")(self, other)

    def __le__(self, other: Any) -> Any:
        return self._np("less_equal")(self, other)

    def __gt__(self, other: Any) -> Any:
        return self._np("greater")(self, other)

    def __ge__(self, other: Any) -> Any:
        return self._np("greater_equal")(self, other)
