"""The functions ``mx.nd.X``: each calls operator X with arrays."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._graphs.training import CUSTOM_TRAINS
from .._operators.functions import Binding, describe
from .._scopes.mode import mode
from ..context import current_context


def _is_array(value: Any) -> bool:
    return isinstance(value, _mxrt.NDArrayBase)


def make(operator: _mxrt.Operator, name: str, module: str, of_numpy: bool = False) -> Any:
    """The function of an operator, of NumPy's interface or not."""
    binding = Binding(operator, of_numpy)
    canonical = operator.name
    invoke = _mxrt.invoke
    may_differ = operator.may_differ_in_training

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > binding.most:
            args, kwargs = binding.by_name(name, args, kwargs, ("out", "name"))
        out = kwargs.pop("out", None)
        kwargs.pop("name", None)
        inputs, attrs = binding.bind(name, args, kwargs, _is_array, "NDArray")
        if binding.is_custom:
            if mode.training:
                attrs[CUSTOM_TRAINS] = "True"
            from ._stored_custom import call_stored

            made = call_stored(inputs, attrs, out)
            if made is not None:
                return made
            return _mxrt.invoke_custom(inputs, attrs, out)
        if may_differ and mode.training and operator.differs_in_training(attrs):
            from ._training import call_operator

            return call_operator(canonical, inputs, attrs, out)
        arrays = tuple(value for _, value in inputs)
        if arrays:
            return invoke(canonical, arrays, attrs, out)
        if attrs.get("ctx", "") is None:
            del attrs["ctx"]
        return invoke(canonical, arrays, attrs, out, current_context()._device)

    describe(function, binding, name, module, "NDArray", ("out", "name"))
    return function
