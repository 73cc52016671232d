"""Symbols with the interface of NumPy's arrays."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..._values.dtypes import dtype_name
from ...base import NotImplementedForSymbol
from ...numpy._methods import ArrayMethods, check_cast, refuse
from .._operators import apply
from ..symbol import Symbol, load_json

__all__ = ["_Symbol", "apply_np"]


def apply_np(operator: str, inputs: list[Any], attrs: dict[str, Any], name: str | None = None) -> Any:
    """An operator applied to symbols: a symbol, or a list of them for several outputs."""
    hint = operator.lower()
    for prefix in ("_npi_", "_npx_", "_np_"):
        hint = hint.removeprefix(prefix)
    return outputs_of(apply(operator, hint, inputs, attrs, name))


def outputs_of(made: Symbol) -> Any:
    """A symbol of one output with NumPy's interface; for several outputs a list of such symbols,
    as in MXNet.
    """
    symbol = _Symbol(made)
    return list(symbol) if len(symbol) > 1 else symbol


def _unpickled(text: str) -> _Symbol:
    """The symbol of pickled JSON."""
    return load_json(text).as_np_ndarray()  # type: ignore[no-any-return]


class _Symbol(ArrayMethods, Symbol):  # type: ignore[misc]
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
            if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
                key = int(key)
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

    # ---- methods ---------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """The symbol with its axes reversed."""
        return self.transpose()

    def astype(  # type: ignore[override]
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """The elements in another dtype; `copy` is for arrays."""
        check_cast(order, casting, subok)
        return apply_np("Cast", [self], {"dtype": dtype_name(dtype)})

    def copy(self, order: str = "C") -> Any:
        """A symbol of equal elements."""
        if order != "C":
            raise NotImplementedError(f"copy only supports order='C', while received {order}")
        return self._np("copy")(self)

    def item(self, *args: Any) -> Any:
        """Refused: a symbol has no value."""
        raise NotImplementedForSymbol(self.item)

    # ---- operators -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return self._np("add")(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._np("subtract")(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._np("subtract")(other, self)

    def __mul__(self, other: Any) -> Any:
        return self._np("multiply")(self, other)

    def __rmul__(self, other: Any) -> Any:
        # A whole number on the left counts as none, as in MXNet.
        return self._np("multiply")(other, self)

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


refuse(_Symbol, "_Symbol", {})
