"""What operators there are: ``mx.operator``."""

from __future__ import annotations

from typing import NamedTuple

from . import _mxrt
from .base import MXNetKeyError

__all__ = ["OperatorArguments", "get_all_registered_operators", "get_operator_arguments"]


class OperatorArguments(NamedTuple):
    """How many arguments an operator has, their names, and what they may be, as text."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """The names of all operators, aliases included."""
    return _mxrt.operator_names()


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """The arguments of an operator: arrays first, then attributes. MXNetKeyError for an unknown
    name.
    """
    found = _mxrt.get_operator(op_name)
    if found is None:
        raise MXNetKeyError(f"Operator {op_name} is not registered; get_all_registered_operators lists those that are")
    names, types = list(found.inputs), ["NDArray-or-Symbol"] * len(found.inputs)
    if found.variadic is not None:
        names, types = ["data"], ["NDArray-or-Symbol[]"]
    for name, kind, default, _ in found.attrs:
        names.append(name)
        types.append(f"{kind}, required" if default is None else f"{kind}, optional, default={default}")
    return OperatorArguments(len(names), names, types)
