"""Classes of the data iterators that the Rust side has: ``mx.io.CSVIter`` and others, one for each
row of its table.
"""

from __future__ import annotations

import os
from ast import literal_eval
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from .. import _mxrt
from .._operators.functions import _default
from .._output.log import info
from .._values.dtypes import dtype_name
from ..base import MXNetDataError
from ..ndarray import array, save
from .io import MXDataIter

__all__: list[str] = []

# What the Python side adds to the parameters of every iterator.
_NAMES = {"data_name": "data", "label_name": "softmax_label"}
# What takes more parameters, such as `mirror` and `mean_r`, than MXNet documents: it is
# ImageRecordIter with this element type.
_SMALL = {"ImageRecordInt8Iter": "int8", "ImageRecordUInt8Iter": "uint8"}


def _shown(default: str | None) -> Any:
    """A default as Python shows it."""
    return literal_eval(default) if default is not None and default.startswith("(") else _default(default)


def _document(doc: str, parameters: list[tuple[str, str, str | None, str]], idle: set[str]) -> str:
    lines = [doc, "", "Parameters", "----------"]
    for name, type_text, default, text in parameters:
        lines.append(f"{name} : {type_text}, {'required' if default is None else f'optional, default={default}'}")
        lines.append(f"    {text}")
    if idle:
        lines.append(f"{', '.join(sorted(idle))} : optional")
        lines.append("    Accepted and ignored, as in MXNet.")
    lines.append("data_name, label_name : string, optional")
    lines.append("    Names of data and labels in ``provide_data`` and ``provide_label``.")
    return "\n".join(lines)


def _without_effect(name: str) -> set[str]:
    """Arguments that programs pass to an iterator although MXNet ignores them there."""
    if name == "MNISTIter":
        return {"data_shape", "input_shape"}
    return {"and_mirror"} if name.startswith("ImageRecord") else set()


def _exists(path: Any) -> bool:
    return "://" in str(path) or os.path.exists(path)


def _save_mean_image(name: str, given: dict[str, Any]) -> None:
    """Writes the file `mean_img`, as MXNet does where it is missing: the mean of what the iterator
    gives in one pass without it.
    """
    path = given["mean_img"]
    info("Cannot find %s: create mean image, this will take some time...", path)
    others = {key: value for key, value in given.items() if key not in ("mean_img", "dtype")}
    if callable(others.get("on_error")):
        others["on_error"] = "skip"
    images = MXDataIter(name, {**others, "round_batch": False, "dtype": "float32"}, "data", "label")
    total, count = np.zeros(images.provide_data[0].shape[1:]), 0
    for batch in images:
        rows = batch.data[0].shape[0] - batch.pad
        total += batch.data[0].asnumpy()[:rows].sum(axis=0, dtype=np.float64)
        count += rows
    if count == 0:
        raise MXNetDataError(f"{name}: mean_img is '{path}', which does not exist, and there is no image to make it of")
    save(str(path), {"mean_img": array(total / count)})


def _class(name: str, doc: str, parameters: list[tuple[str, str, str | None, str]]) -> type[MXDataIter]:
    """The class of one iterator."""
    order = [parameter[0] for parameter in parameters] + list(_NAMES)
    idle = _without_effect(name) - set(order)

    def __init__(self: MXDataIter, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(order):
            raise TypeError(f"{name}() takes at most {len(order)} arguments but {len(args)} were given")
        given = dict(zip(order, args, strict=False))
        for key, value in kwargs.items():
            if key in given:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            given[key] = value
        names = [given.pop(key, default) for key, default in _NAMES.items()]
        given = {key: value for key, value in given.items() if value is not None and key not in idle}
        if "dtype" in given:
            given["dtype"] = dtype_name(given["dtype"])
        if "mean_img" in order and given.get("mean_img") not in (None, "", "None") and not _exists(given["mean_img"]):
            _save_mean_image(name, given)
        reader = name
        if name in _SMALL and not set(given) <= set(order):
            reader, given["dtype"] = "ImageRecordIter", _SMALL[name]
        self._csr_labels = given.get("label_libsvm", "NULL") != "NULL" and not given.get("dense")
        MXDataIter.__init__(self, reader, given, *names)

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
    content = {"__init__": __init__, "__doc__": _document(doc, parameters, idle), "__module__": "mxrt.io"}
    return type(name, (MXDataIter,), content)


for _name, _doc, _parameters in _mxrt.iterators():
    globals()[_name] = _class(_name, _doc, _parameters)
    __all__.append(_name)
