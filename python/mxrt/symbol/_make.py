"""The functions ``mx.sym.X``: each applies operator X to symbols."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._operators.functions import Binding, describe
from ._operators import apply


def _is_symbol(value: Any) -> bool:
    return isinstance(value, _mxrt.SymbolBase)


def make(operator: _mxrt.Operator, name: str, module: str, of_numpy: bool = False) -> Any:
    """The function of an operator, of NumPy's interface or not."""
    binding = Binding(operator, of_numpy)
    canonical = operator.name
    hint = name.lower()

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > binding.most:
            args, kwargs = binding.by_name(name, args, kwargs, ("name", "attr", "out"))
        kwargs.pop("out", None)
        node = kwargs.pop("name", None)
        attr = kwargs.pop("attr", None)
        inputs, attrs = binding.bind(name, args, kwargs, _is_symbol, "Symbol")
        return apply(canonical, hint, inputs, attrs, node, attr)

    describe(function, binding, name, module, "Symbol", ("name", "attr", "out"))
    return function
