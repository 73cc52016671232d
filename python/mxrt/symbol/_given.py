"""Shapes and element types that inference begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from .. import _mxrt
from .._scopes.np_mode import is_np_shape
from .._values.dtypes import dtype_class, dtype_name
from .._values.extents import check_extents
from ..base import MXNetValueError

__all__ = ["Given", "classes"]


def classes(names: list[str | None]) -> list[Any]:
    """Classes of numpy for names of element types; None stays None."""
    return [None if name is None else dtype_class(name) for name in names]


class Given(_mxrt.SymbolBase):
    """A symbol that infers from shapes and types that are given by position or name."""

    __slots__ = ()

    def _shapes_known(self, **known: tuple[int, ...]) -> tuple[Any, Any, Any]:
        """Infers shapes like ``infer_shape_partial``, and all that follows from these."""
        return self._infer_shape(self._known_shapes((), known), True)[:3]

    def _shapes_with_labels(self, known: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Shapes of the arguments. Labels that are reshaped on their way to a loss have one too."""
        found = self._infer_shape(self._known_shapes((), dict(known)), True, True)[0]
        return dict(zip(self.list_arguments(), found, strict=True))

    def _known_shapes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, list[int]]]:
        if args and kwargs:
            raise ValueError("Can only specify known argument shapes either by positional or kwargs way.")
        given = self._in_order(args, "shapes") if args else kwargs.items()
        known = []
        numpy = is_np_shape()
        for name, shape in given:
            if shape is None:
                continue
            if not isinstance(shape, (tuple, list)):
                raise TypeError(f"Arguments need to be shapes (tuple), but argument {name} is {type(shape)}.")
            whole = list(map(index, shape))
            check_extents(map(abs, whole), name)
            known.append((name, whole if numpy else [max(n, 0) for n in whole]))
        return known

    def _in_order(self, args: tuple[Any, ...], what: str) -> Iterable[tuple[str, Any]]:
        names = self.list_arguments()
        if len(args) > len(names):
            raise MXNetValueError(
                f"{len(args)} {what} were given, but the symbol has {len(names)} arguments: {', '.join(names)}"
            )
        return zip(names, args, strict=False)

    def _known_types(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, str]]:
        if args and kwargs:
            raise ValueError("Can only specify known argument types either by positional or kwargs way.")
        given = self._in_order(args, "types") if args else kwargs.items()
        return [(name, dtype_name(dtype)) for name, dtype in given if dtype is not None]
