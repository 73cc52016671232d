"""Operators applied to symbols, and Python's operators between symbols and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _mxrt, attribute
from .. import name as naming
from ..base import numeric_types

if TYPE_CHECKING:
    from .symbol import Symbol


def apply(
    op: str,
    hint: str,
    inputs: list[Any],
    attrs: dict[str, Any],
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
    graphs: list[Any] | None = None,
) -> Symbol:
    """An operator applied to symbols; inputs are symbols, or pairs of an input's name and a
    symbol. `graphs` are those that control flow runs.
    """
    if "attr" in attrs:
        attrs = dict(attrs)
        attr = attrs.pop("attr")
    node = naming.current().get(name, hint)
    pairs = [value if isinstance(value, tuple) else (None, value) for value in inputs]
    made: Symbol = _mxrt.create(op, node, {**attribute.current().get(attr), **attrs}, pairs, graphs or [])
    return made


def _binary(
    left: Any, right: Any, symbols: tuple[str, str] | None, numbers: tuple[str, str], kinds: Any = Number
) -> Symbol:
    """Operator and hint for its name, for a symbol and for a number on the right."""
    if isinstance(right, _mxrt.SymbolBase) and symbols is not None:
        return apply(*symbols, [left, right], {})
    if isinstance(right, kinds):
        return apply(*numbers, [left], {"scalar": right})
    raise TypeError(f"type {type(right)} not supported: a Symbol combines with Symbols and numbers")


def _compared(left: Any, right: Any, name: str) -> Symbol:
    # MXNet takes other numbers here than in arithmetic.
    scalar = f"{name}_scalar"
    return _binary(left, right, (name, name), (scalar, scalar), numeric_types)


class SymbolOperators(_mxrt.SymbolBase):
    """Python's operators of :class:`mxrt.sym.Symbol`."""

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __neg__(self) -> Symbol:
        return apply("_mul_scalar", "_mulscalar", [self], {"scalar": -1.0})

    def __abs__(self) -> Symbol:
        return apply("abs", "abs", [self], {})

    def __add__(self, other: Any) -> Symbol:
        return _binary(self, other, ("elemwise_add", "_plus"), ("_plus_scalar", "_plusscalar"))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Symbol:
        return _binary(self, other, ("elemwise_sub", "_minus"), ("_minus_scalar", "_minusscalar"))

    def __rsub__(self, other: Any) -> Symbol:
        return _binary(self, other, None, ("_rminus_scalar", "_rminusscalar"))

    def __mul__(self, other: Any) -> Symbol:
        return _binary(self, other, ("elemwise_mul", "_mul"), ("_mul_scalar", "_mulscalar"))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Symbol:
        return _binary(self, other, ("elemwise_div", "_div"), ("_div_scalar", "_divscalar"))

    def __rtruediv__(self, other: Any) -> Symbol:
        return _binary(self, other, None, ("_rdiv_scalar", "_rdivscalar"))

    def __mod__(self, other: Any) -> Symbol:
        return _binary(self, other, ("_mod", "_mod"), ("_mod_scalar", "_modscalar"))

    def __rmod__(self, other: Any) -> Symbol:
        return _binary(self, other, None, ("_rmod_scalar", "_rmodscalar"))

    def __pow__(self, other: Any) -> Symbol:
        return _binary(self, other, ("_power", "_power"), ("_power_scalar", "_powerscalar"))

    def __rpow__(self, other: Any) -> Symbol:
        return _binary(self, other, None, ("_rpower_scalar", "_rpower_scalar"))

    def __eq__(self, other: object) -> Symbol:  # type: ignore[override]
        return _compared(self, other, "_equal")

    def __ne__(self, other: object) -> Symbol:  # type: ignore[override]
        return _compared(self, other, "_not_equal")

    def __gt__(self, other: Any) -> Symbol:
        return _compared(self, other, "_greater")

    def __ge__(self, other: Any) -> Symbol:
        return _compared(self, other, "_greater_equal")

    def __lt__(self, other: Any) -> Symbol:
        return _compared(self, other, "_lesser")

    def __le__(self, other: Any) -> Symbol:
        return _compared(self, other, "_lesser_equal")
