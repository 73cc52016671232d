"""Symbols with the interface of NumPy's arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from ...base import NotImplementedForSymbol
from .._operators import apply
from ..symbol import Symbol, load_json

__all__ = ["_Symbol", "apply_np"]


def apply_np(operator: str, inputs: list[Any], attrs: dict[str, Any], name: str | None = None) -> _Symbol:
    """An operator applied to symbols."""
    hint = operator.lower()
    for prefix in ("_npi_", "_npx_", "_np_"):
        hint = hint.removeprefix(prefix)
    return _Symbol(apply(operator, hint, inputs, attrs, name))


def _method(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._np(name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The function ``mx.np.{name}`` of this symbol."
    return method


def _unpickled(text: str) -> _Symbol:
    """The symbol of pickled JSON."""
    return load_json(text).as_np_ndarray()  # type: ignore[no-any-return]


class _Symbol(Symbol):
    """A symbol whose operators and methods are those of arrays of ``mx.np``.

    Unlike a symbol of ``mx.sym`` it takes attributes of programs, as in MXNet.
    """

    __array_ufunc__ = None

    def as_nd_ndarray(self) -> Symbol:
        """A symbol of ``mx.sym`` with the same outputs."""
        return Symbol(self)

    def as_np_ndarray(self) -> _Symbol:
        """The symbol itself."""
        return self

    def __copy__(self) -> _Symbol:
        return super().__copy__().as_np_ndarray()  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> _Symbol:
        return super().__deepcopy__(memo).as_np_ndarray()  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.tojson(remove_amp_cast=False),)

    @property
    def num_outputs(self) -> int:
        """How many outputs the symbol has."""
        return len(self.list_outputs())

    def __getitem__(self, index: Any) -> Any:
        """An output of several, by number, name or slice; of one output a part, by integers,
        slices and None.
        """
        if isinstance(index, str) or len(self) > 1:
            return _Symbol(super().__getitem__(index))
        if isinstance(index, tuple):
            return self._part(index, True) if index else self
        return self._part((index,), not isinstance(index, slice))

    def _part(self, keys: tuple[Any, ...], reshaped: bool) -> _Symbol:
        if keys and keys[-1] is Ellipsis:
            keys = keys[:-1]
        begin: list[int | None] = []
        end: list[int | None] = []
        step: list[int | None] = []
        # What the reshape does with each axis: -2 keeps it, -3 drops it, -4 keeps all others.
        codes: list[int] = []
        added: list[int] = []
        for key in keys:
            if key is None:
                added.append(codes.count(-2) + len(added))
                continue
            if isinstance(key, int) and not isinstance(key, bool):
                codes.append(-3)
                key = slice(key, key + 1 or None)
            else:
                codes.append(-2)
            if not isinstance(key, slice):
                raise IndexError(f"a symbol is indexed by integers, slices and None, not by {type(key)}")
            begin.append(key.start)
            end.append(key.stop)
            step.append(key.step)
        made: Any = self
        if begin:
            attrs = {"begin": tuple(begin), "end": tuple(end), "step": tuple(step)}
            made = apply_np("_npi_slice", [made], attrs)
            if reshaped:
                made = apply_np("_npx_reshape", [made], {"newshape": (*codes, -4)})
        for axis in added:
            made = apply_np("_npi_expand_dims", [made], {"axis": axis})
        return made  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return (_Symbol(self._output(i)) for i in range(len(self)))

    def _np(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(sys.modules["mxrt.numpy"], name)
        return found

    # ---- methods ---------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """The symbol with its axes reversed."""
        return self.transpose()

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        """The elements in another shape; -1 is worked out."""
        kwargs.pop("order", None)
        shape = kwargs.pop("newshape", None) or (args[0] if len(args) == 1 and not isinstance(args[0], int) else args)
        return self._np("reshape")(self, tuple(shape))

    def transpose(self, *axes: Any, **kwargs: Any) -> Any:
        """The symbol with permuted axes; reversed ones if none are given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or kwargs.get("axes"))
        return self._np("transpose")(self, order)

    def astype(self, dtype: Any, **kwargs: Any) -> Any:
        """The elements in another dtype."""
        from ..._dtypes import dtype_name

        return apply_np("Cast", [self], {"dtype": dtype_name(dtype)})

    def flatten(self, *args: Any, **kwargs: Any) -> Any:
        """The elements in one axis."""
        return self.reshape(-1)

    # Functions of mx.np with the symbol as first argument.
    all: Any = _method("all")
    any: Any = _method("any")
    argmax: Any = _method("argmax")
    argmin: Any = _method("argmin")
    argsort: Any = _method("argsort")
    broadcast_to: Any = _method("broadcast_to")
    clip: Any = _method("clip")
    copy: Any = _method("copy")
    cumsum: Any = _method("cumsum")
    dot: Any = _method("dot")
    expand_dims: Any = _method("expand_dims")
    max: Any = _method("max")
    mean: Any = _method("mean")
    min: Any = _method("min")
    prod: Any = _method("prod")
    repeat: Any = _method("repeat")
    round: Any = _method("round")
    squeeze: Any = _method("squeeze")
    std: Any = _method("std")
    sum: Any = _method("sum")
    swapaxes: Any = _method("swapaxes")
    take: Any = _method("take")
    var: Any = _method("var")

    def item(self, *args: Any) -> Any:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.item)

    # ---- operators -------------------------------------------------------------------------------

    def __neg__(self) -> Any:
        return self._np("multiply")(self, -1.0)

    def __abs__(self) -> Any:
        return self._np("absolute")(self)

    def __add__(self, other: Any) -> Any:
        return self._np("add")(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._np("subtract")(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._np("subtract")(other, self)

    def __mul__(self, other: Any) -> Any:
        return self._np("multiply")(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._np("divide")(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._np("divide")(other, self)

    def __mod__(self, other: Any) -> Any:
        return self._np("mod")(self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._np("mod")(other, self)

    def __pow__(self, other: Any) -> Any:
        return self._np("power")(self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._np("power")(other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._np("matmul")(self, other)

    def __and__(self, other: Any) -> Any:
        return self._np("bitwise_and")(self, other)

    def __or__(self, other: Any) -> Any:
        return self._np("bitwise_or")(self, other)

    def __xor__(self, other: Any) -> Any:
        return self._np("bitwise_xor")(self, other)

    def __invert__(self) -> Any:
        return self._np("invert")(self)

    def __eq__(self, other: object) -> Any:
        return self._np("equal")(self, other)

    def __ne__(self, other: object) -> Any:
        return self._np("not_equal")(self, other)

    def __gt__(self, other: Any) -> Any:
        return self._np("greater")(self, other)

    def __ge__(self, other: Any) -> Any:
        return self._np("greater_equal")(self, other)

    def __lt__(self, other: Any) -> Any:
        return self._np("less")(self, other)

    def __le__(self, other: Any) -> Any:
        return self._np("less_equal")(self, other)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]
