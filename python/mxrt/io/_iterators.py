"""Classes of the data iterators that the Rust side has: ``mx.io.CSVIter`` and others, one for each
row of its table.
"""

from __future__ import annotations

from ast import literal_eval
from inspect import Parameter, Signature
from typing import Any

from .. import _mxrt
from .._functions import _default
from ..base import dtype_name
from .io import MXDataIter

__all__: list[str] = []

# What the Python side adds to the parameters of every iterator.
_NAMES = {"data_name": "data", "label_name": "softmax_label"}


def _shown(default: str | None) -> Any:
    """A default as Python shows it."""
    return literal_eval(default) if default is not None and default.startswith("(") else _default(default)


def _document(doc: str, parameters: list[tuple[str, str, str | None, str]]) -> str:
    lines = [doc, "", "Parameters", "----------"]
    for name, type_text, default, text in parameters:
        lines.append(f"{name} : {type_text}, {'required' if default is None else f'optional, default={default}'}")
        lines.append(f"    {text}")
    lines.append("data_name, label_name : string, optional")
    lines.append("    Names of data and labels in ``provide_data`` and ``provide_label``.")
    return "\n".join(lines)


def _class(name: str, doc: str, parameters: list[tuple[str, str, str | None, str]]) -> type[MXDataIter]:
    """The class of one iterator."""
    order = [parameter[0] for parameter in parameters] + list(_NAMES)

    def __init__(self: MXDataIter, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(order):
            raise TypeError(f"{name}() takes at most {len(order)} arguments but {len(args)} were given")
        given = dict(zip(order, args, strict=False))
        for key, value in kwargs.items():
            if key in given:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            given[key] = value
        names = [given.pop(key, default) for key, default in _NAMES.items()]
        given = {key: value for key, value in given.items() if value is not None}
        if "dtype" in given:
            given["dtype"] = dtype_name(given["dtype"])
        MXDataIter.__init__(self, name, given, *names)

    shown = []
    for key, _, default, _ in parameters:
        optional = default is not None or any(p.default is not Parameter.empty for p in shown)
        shown.append(
            Parameter(key, Parameter.POSITIONAL_OR_KEYWORD, default=_shown(default) if optional else Parameter.empty)
        )
    shown += [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in _NAMES.items()]
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = Signature([itself, *shown], return_annotation=None)  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{name}.__init__"
    content = {"__init__": __init__, "__doc__": _document(doc, parameters), "__module__": "mxrt.io"}
    return type(name, (MXDataIter,), content)


for _name, _doc, _parameters in _mxrt.iterators():
    globals()[_name] = _class(_name, _doc, _parameters)
    __all__.append(_name)
