"""Inputs of modules: what a batch has, and the shapes that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from .. import ndarray as nd
from ..base import MXNetError, MXNetShapeError, MXNetTypeError, warn
from ..context import Context
from ..io import DataDesc
from ..ndarray import NDArray
from ..symbol import Symbol

__all__ = ["BatchMethods", "NameMismatchError", "check_names", "descriptions"]


class NameMismatchError(MXNetError, ValueError):
    """Names of inputs do not fit the symbol."""


def _names_of(names: list[str], provided: Any) -> list[str]:
    """The names of a batch's arrays: those that it says if they are bound, else the bound ones."""
    said = [d.name if isinstance(d, DataDesc) else d[0] for d in provided or ()]
    return said if set(names) <= set(said) else names


def check_names(arguments: Sequence[str], names: Sequence[str], kind: str, required: bool) -> None:
    """NameMismatchError for a name that is no argument of the symbol, a warning where it is not
    `required`.
    """
    for name in names:
        if name in arguments:
            continue
        parameters = ("weight", "bias", "gamma", "beta")
        others = [n for n in arguments if kind == "fixed_param" or not n.endswith(parameters)]
        import difflib

        close = difflib.get_close_matches(name, others, 5, 0.1) or others
        message = (
            f"You created Module with Module(..., {kind}_names={list(names)}) but input with name '{name}' is not "
            f"found in symbol.list_arguments(). Did you mean one of:\n\t" + "\n\t".join(close)
        )
        if required:
            raise NameMismatchError(message)
        if name != "softmax_label":
            warn(message)


def descriptions(shapes: Any) -> list[DataDesc]:
    """Descriptions of inputs, which may be given as tuples."""
    if isinstance(shapes, tuple) and shapes and isinstance(shapes[0], str):
        raise MXNetTypeError(f"{shapes} is the description of one input; give a list of them: [{shapes}]")
    return [one if isinstance(one, DataDesc) else DataDesc(*one) for one in shapes or []]


class BatchMethods:
    """Methods of :class:`mxrt.mod.Module` for the inputs of a call."""

    _symbol: Symbol
    _arguments: list[str]
    _label_names: list[str]
    _data_shapes: list[DataDesc]
    _label_shapes: list[DataDesc] | None
    _first_context: Context
    # For every state the arrays of all contexts.
    _states: list[list[NDArray]]

    def _type_of(self, data: DataDesc) -> Any:
        """The element type of an input."""
        raise NotImplementedError

    def _rebind_group(self) -> None:
        raise NotImplementedError

    def _inputs_of(self, batch: Any) -> dict[str, NDArray]:
        names = _names_of([d.name for d in self._data_shapes], getattr(batch, "provide_data", None))
        data = list(batch.data)
        if len(data) < len(names):
            raise NameMismatchError(
                f"Data provided by the batch don't match names specified by data_names ({len(data)} arrays vs. {names})"
            )
        found = dict(zip(names, data, strict=False))
        inputs: dict[str, NDArray] = {}
        for description in self._data_shapes:
            value, dtype = found[description.name], self._type_of(description)
            inputs[description.name] = self._array_of(description.name, value, dtype)
        types = {d.name: d.dtype for d in self._label_shapes or []}
        labels = _names_of([d.name for d in self._label_shapes or []], getattr(batch, "provide_label", None))
        for name, value in zip(labels or self._label_names, getattr(batch, "label", None) or [], strict=False):
            if name in self._arguments and value is not None:
                inputs[name] = self._array_of(name, value, types.get(name))
        return inputs

    def _array_of(self, name: str, value: Any, dtype: Any) -> NDArray:
        """The value of an input with an element type; its own where none is given."""
        if isinstance(value, np.ndarray):
            value = nd.array(value, self._first_context, dtype)
        if not isinstance(value, NDArray):
            raise MXNetTypeError(
                f"Module.forward: input '{name}': got {type(value).__name__}, wanted an NDArray or a numpy array: "
                "pass mx.nd.array(x)"
            )
        return value.astype(value.dtype if dtype is None else dtype, copy=False)

    def _fits_bound(self, inputs: Mapping[str, NDArray]) -> bool:
        return all(inputs[d.name].shape == tuple(d.shape) for d in self._data_shapes)

    def _follow(self, inputs: dict[str, NDArray], batch: Any) -> None:
        """Binds the module again if a batch that ran has shapes other than the bound ones."""
        if self._fits_bound(inputs):
            return
        self._data_shapes = [DataDesc(d.name, inputs[d.name].shape, d.dtype, d.layout) for d in self._data_shapes]
        provided = getattr(batch, "provide_label", None)
        if provided:
            self._label_shapes = descriptions(provided)
        elif self._label_shapes:
            self._label_shapes = self._labels_of(getattr(batch, "label", None) or [])
        if not self._states:
            self._rebind_group()

    def _labels_of(self, labels: Sequence[Any]) -> list[DataDesc]:
        """The bound labels with the shapes of these; one not given has as many rows as the data."""
        rows = self._data_shapes[0].shape[0]
        given = chain(labels, repeat(None))
        return [
            DataDesc(d.name, getattr(label, "shape", (rows, *d.shape[1:])), d.dtype, d.layout)
            for d, label in zip(self._label_shapes or [], given, strict=False)
        ]

    def _label(self, name: str, inputs: Mapping[str, NDArray], context: Context) -> NDArray:
        """A label that is not given: zeros, since at inference its value does not matter.

        Its shape is worked out from the other inputs of the same call: other threads may use other
        batch sizes.
        """
        shape = self._symbol._shapes_with_labels({n: a.shape for n, a in inputs.items()}).get(name) or ()
        if not shape or 0 in shape:
            raise MXNetShapeError(
                f"Module.forward: the shape of '{name}' is not known; give it in label_shapes or the batch"
            )
        return nd.zeros(shape, ctx=context)
