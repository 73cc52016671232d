"""Calls of operators in Python whose inputs or outputs are stored sparsely: ``mx.nd.Custom``."""

from __future__ import annotations

from typing import Any

from .. import _mxrt
from .._custom import Adapter
from .._custom import make as make_adapter
from ..base import MXNetTypeError
from ..operator import _CUSTOM, CustomOpProp
from .creation import _stored
from .ndarray import NDArray

__all__ = ["call_stored"]


def call_stored(inputs: list[tuple[str | None, Any]], attrs: dict[str, str], out: Any) -> Any:
    """The results of an operator that says how its arrays are stored, if some are sparse; None for
    others, which the engine calls.
    """
    prop = _CUSTOM.get(str(attrs.get("op_type")))
    if prop is None or prop.infer_storage_type is CustomOpProp.infer_storage_type:
        return None
    adapter = make_adapter(str(attrs["op_type"]), {key: value for key, value in attrs.items() if key != "op_type"})
    if adapter is None:
        return None
    arrays = _in_order(adapter, inputs)
    if arrays is None:
        return None
    count = len(adapter.arguments)
    wanted, made, _ = adapter.infer_storage_type([array.stype for array in arrays[:count]])
    if {*wanted, *made} == {"default"}:
        return None
    given = [_as_stored(array, stype) for array, stype in zip(arrays[:count], wanted, strict=True)]
    shapes = adapter.infer_shape([list(array.shape) for array in given])[1]
    types = adapter.infer_type([array._dtype_name for array in given])[1]
    context = given[0].context
    outputs = [
        _stored(stype, tuple(shape), context, dtype or "float32")
        for stype, shape, dtype in zip(made, shapes, types, strict=True)
    ]
    adapter.forward(given, outputs, arrays[count:])
    return _delivered(outputs, out)


def _in_order(adapter: Adapter, inputs: list[tuple[str | None, Any]]) -> list[NDArray] | None:
    """The arrays in the order of the operator's arguments and states; None unless all are given."""
    names = [*adapter.arguments, *adapter.states]
    found: dict[str, NDArray] = {}
    for place, (name, array) in enumerate(inputs):
        if place >= len(names) and name is None:
            return None
        found[names[place] if name is None else name] = array
    return [found[name] for name in names] if set(found) == set(names) else None


def _as_stored(array: NDArray, stype: str) -> NDArray:
    if array.stype == stype:
        return array
    made: NDArray = _mxrt.to_storage(array, stype)
    return made


def _delivered(outputs: list[NDArray], out: Any) -> Any:
    """The results, in the arrays of `out` if there are some."""
    if out is None:
        return outputs[0] if len(outputs) == 1 else outputs
    targets = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(targets) != len(outputs):
        raise MXNetTypeError(f"Custom: out has {len(targets)} arrays, and the operator {len(outputs)} outputs")
    for array, target in zip(outputs, targets, strict=True):
        array.copyto(target)
    return out
