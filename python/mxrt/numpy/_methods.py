"""Methods and operators of arrays and symbols of ``mx.np`` that are functions of ``mx.np``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ..ndarray import NDArray

__all__ = ["ArrayMethods", "NumpyMethods", "check_cast", "refuse"]

_PACKAGE = __name__.rpartition(".")[0]


def _functions() -> Any:
    """The package ``mx.np``, which needs this module first."""
    return sys.modules[_PACKAGE]


class ArrayMethods:
    """Methods of arrays and symbols of ``mx.np``: each calls the function of ``mx.np`` with the
    object as its first argument.
    """

    __slots__ = ()

    def _np(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(sys.modules[_PACKAGE], name)
        return found

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Whether all elements, or those along an axis, are not 0."""
        return _functions().all(self, axis=axis, keepdims=keepdims, out=out)

    def any(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Whether some element, or one along an axis, is not 0."""
        return _functions().any(self, axis=axis, keepdims=keepdims, out=out)

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The sum, over all axes or the given ones."""
        return _functions().sum(self, axis=axis, dtype=dtype, keepdims=keepdims, out=out)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The product, over all axes or the given ones."""
        return _functions().prod(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The mean, over all axes or the given ones."""
        return _functions().mean(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """The standard deviation, over all axes or the given ones."""
        return _functions().std(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        """The variance, over all axes or the given ones."""
        return _functions().var(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The largest element, over all axes or the given ones."""
        return _functions().max(self, axis=axis, out=out, keepdims=keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """The smallest element, over all axes or the given ones."""
        return _functions().min(self, axis=axis, out=out, keepdims=keepdims)

    def argmax(self, axis: Any = None, out: Any = None) -> Any:
        """The index of the largest element."""
        return _functions().argmax(self, axis, out)

    def argmin(self, axis: Any = None, out: Any = None) -> Any:
        """The index of the smallest element."""
        return _functions().argmin(self, axis, out)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Sums of the elements so far."""
        return _functions().cumsum(self, axis=axis, dtype=dtype, out=out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """The elements limited to a range."""
        return _functions().clip(self, min, max, out=out)

    def round(self, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
        """The elements rounded to a number of decimals."""
        return _functions().round(self, decimals=decimals, out=out, **kwargs)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Each element several times."""
        return _functions().repeat(self, repeats, axis)

    def squeeze(self, axis: Any = None) -> Any:
        """Without axes of extent 1."""
        return _functions().squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """A copy with two axes exchanged."""
        return _functions().swapaxes(self, axis1, axis2)

    def take(self, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
        """The elements at these indices."""
        return _functions().take(self, indices, axis, mode)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> NoReturn:
        """Refused, as in MXNet: NumPy sorts in place."""
        raise NotImplementedError("ndarray.sort: sorting in place is not supported; use mx.np.sort(x)")

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None) -> Any:
        """The indices that sort the array."""
        return _functions().argsort(self, axis=axis, kind=kind, order=order)

    def dot(self, b: Any, out: Any = None) -> Any:
        """The product with another array."""
        return _functions().dot(self, b, out=out)

    # ---- shape -----------------------------------------------------------------------------------

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        """A copy in another shape; one extent may be -1."""
        order = kwargs.pop("order", "C")
        if kwargs:
            raise TypeError(f"{next(iter(kwargs))} is an invalid keyword argument for reshape")
        if order != "C":
            raise NotImplementedError(f"only supports C-order, while received {order}")
        if not args:
            raise TypeError("reshape() takes exactly 1 argument (0 given)")
        shape = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        return _functions().reshape(self, shape)

    def transpose(self, *axes: Any) -> Any:
        """A copy with permuted axes; reversed ones if none are given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return _functions().transpose(self, order)

    def flatten(self, order: str = "C") -> Any:
        """The elements in one axis, as a copy."""
        if order != "C":
            raise NotImplementedError(f"flatten only supports order='C', while received {order}")
        return self.reshape(-1)

    def broadcast_to(self, shape: Any) -> Any:
        """Repeated to a larger shape."""
        return _functions().broadcast_to(self, shape)

    # ---- operators -------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        return _functions().matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _functions().matmul(other, self)

    def __imatmul__(self, other: Any) -> Any:
        return _functions().matmul(self, other, out=self)

    def __and__(self, other: Any) -> Any:
        return _functions().bitwise_and(self, other)

    __rand__ = __and__

    def __iand__(self, other: Any) -> Any:
        return _functions().bitwise_and(self, other, out=self)

    def __or__(self, other: Any) -> Any:
        return _functions().bitwise_or(self, other)

    __ror__ = __or__

    def __ior__(self, other: Any) -> Any:
        return _functions().bitwise_or(self, other, out=self)

    def __xor__(self, other: Any) -> Any:
        return _functions().bitwise_xor(self, other)

    __rxor__ = __xor__

    def __ixor__(self, other: Any) -> Any:
        return _functions().bitwise_xor(self, other, out=self)

    def __invert__(self) -> Any:
        return _functions().invert(self)

    def __neg__(self) -> Any:
        # As in MXNet, and so of bool too.
        return _functions().multiply(self, -1.0)

    def __abs__(self) -> Any:
        return _functions().absolute(self)

    def __round__(self, n: int = 0) -> Any:
        return _functions().round(self, n)

    def __ceil__(self) -> Any:
        return _functions().ceil(self)

    def __floor__(self) -> Any:
        return _functions().floor(self)

    def __trunc__(self) -> Any:
        return _functions().trunc(self)


class NumpyMethods(ArrayMethods, NDArray):  # type: ignore[misc]
    """Methods of arrays of ``mx.np`` that are functions of ``mx.np``."""

    __slots__ = ()

    def nonzero(self) -> Any:
        """The indices of the elements that are not 0, an array for each axis."""
        return _functions().nonzero(self)

    # Other arithmetic and comparisons are in NDArrayBase. Here are the types of their results.
    if TYPE_CHECKING:

        def __add__(self, other: Any, /) -> Any: ...
        def __radd__(self, other: Any, /) -> Any: ...
        def __iadd__(self, other: Any, /) -> Any: ...
        def __sub__(self, other: Any, /) -> Any: ...
        def __rsub__(self, other: Any, /) -> Any: ...
        def __isub__(self, other: Any, /) -> Any: ...
        def __mul__(self, other: Any, /) -> Any: ...
        def __rmul__(self, other: Any, /) -> Any: ...
        def __imul__(self, other: Any, /) -> Any: ...
        def __truediv__(self, other: Any, /) -> Any: ...
        def __rtruediv__(self, other: Any, /) -> Any: ...
        def __itruediv__(self, other: Any, /) -> Any: ...
        def __mod__(self, other: Any, /) -> Any: ...
        def __rmod__(self, other: Any, /) -> Any: ...
        def __imod__(self, other: Any, /) -> Any: ...
        def __lt__(self, other: Any, /) -> Any: ...
        def __le__(self, other: Any, /) -> Any: ...
        def __gt__(self, other: Any, /) -> Any: ...
        def __ge__(self, other: Any, /) -> Any: ...
        def __eq__(self, other: object, /) -> Any: ...
        def __ne__(self, other: object, /) -> Any: ...
        def __pow__(self, other: Any, modulo: Any = None, /) -> Any: ...
        def __rpow__(self, other: Any, modulo: Any = None, /) -> Any: ...

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'ndarray' of mx.np; use id(x), or x.as_nd_ndarray() as a key")


def check_cast(order: Any, casting: Any, subok: Any) -> None:
    """Refuses options of ``astype`` that MXNet refuses."""
    if order not in (None, "K", "C"):
        raise ValueError("order must be either 'K' or 'C'")
    if casting != "unsafe":
        raise ValueError("casting must be equal to 'unsafe'")
    if not subok:
        raise ValueError("subok must be equal to True")


# ---- methods that are not here -------------------------------------------------------------------

# Methods of mx.nd.NDArray and mx.sym.Symbol that arrays and symbols of NumPy do not have, as in
# MXNet.
_NOT_HERE = (
    "abs arccos arccosh arcsin arcsinh arctan arctanh argmax_channel broadcast_axes broadcast_like cbrt ceil cos "
    "cosh degrees depth_to_space diag exp expand_dims expm1 fix flip floor log log10 log1p log2 log_softmax nanprod "
    "nansum norm one_hot ones_like pad pick radians rcbrt reciprocal relu reshape_like rint rsqrt shape_array "
    "sigmoid sign sin sinh size_array slice slice_axis slice_like softmax softmin space_to_depth split split_v2 sqrt "
    "square tan tanh tile topk trunc zeros_like"
).split()


class _NotHere:
    """A method of the classes without NumPy's interface that is an error here, which says what
    works instead.
    """

    def __init__(self, name: str, owner: str, instead: str | None) -> None:
        self._name = name
        self._owner = owner
        self._instead = instead

    def __get__(self, array: Any, kind: Any = None) -> NoReturn:
        name = self._name
        instead = self._instead or f"x.as_nd_ndarray().{name}(...)"
        if self._instead is None and name in _functions().__all__:
            instead = f"mx.np.{name}(x, ...)"
        raise AttributeError(f"{self._owner} object has no attribute {name}; use {instead}")


def refuse(kind: type, owner: str, instead: Mapping[str, str | None]) -> None:
    """Makes methods that MXNet's class lacks errors, and those in `instead`, for which it may say
    what works.
    """
    for name in (*_NOT_HERE, *instead):
        setattr(kind, name, _NotHere(name, owner, instead.get(name)))
