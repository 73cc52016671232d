"""What operators there are, and the base classes of those written in Python: ``mx.operator``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from . import _mxrt
from .base import MXNetKeyError, MXNetTypeError

__all__ = [
    "CustomOp",
    "CustomOpProp",
    "OperatorArguments",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]


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


# ---- operators written in Python -----------------------------------------------------------------
# Programs define and register such classes when they are imported. Nodes ``Custom`` are not run by
# this build.


class CustomOp:
    """An operator written in Python: subclasses define ``forward``. This build does not run it."""

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        """Computes `out_data` from `in_data`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(
        self,
        req: list[str],
        out_grad: list[Any],
        in_data: list[Any],
        out_data: list[Any],
        in_grad: list[Any],
        aux: list[Any],
    ) -> None:
        """Would compute gradients; never called."""

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Writes a result as `req` says: ``write`` and ``inplace`` overwrite, ``add`` adds,
        ``null`` does nothing.
        """
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src


class CustomOpProp:
    """What an operator written in Python takes and gives: subclasses define ``create_operator``."""

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
        """Shapes of inputs, outputs and auxiliary states: outputs as the first input unless a
        subclass says.
        """
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: list[Any]) -> tuple[Any, ...]:
        """Types of inputs, outputs and auxiliary states: that of the first input unless a subclass
        says.
        """
        first = in_type[0]
        return in_type, [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def declare_backward_dependency(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any]) -> list[Any]:
        """What gradients would be computed from."""
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """The operator for inputs of these shapes and types; subclasses define it."""
        return CustomOp()


_Prop = TypeVar("_Prop", bound=type[CustomOpProp])
_CUSTOM: dict[str, type[CustomOpProp]] = {}


def register(reg_name: str) -> Callable[[_Prop], _Prop]:
    """A decorator that gives a subclass of CustomOpProp the name that ``op_type`` of ``Custom``
    nodes has.

    Raises MXNetTypeError for another class.
    """

    def decorate(prop_cls: _Prop) -> _Prop:
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise MXNetTypeError(
                f"operator.register('{reg_name}'): expected a subclass of CustomOpProp, got {prop_cls}"
            )
        _CUSTOM[reg_name] = prop_cls
        return prop_cls

    return decorate
