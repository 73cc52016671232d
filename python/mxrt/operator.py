"""A list of all operators, and the base classes of those written in Python: ``mx.operator``.

An operator of one's own is a subclass of CustomOp and one of CustomOpProp, registered by name::

    class Shifted(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] + 1)

    @mx.operator.register("shifted")
    class ShiftedProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Shifted()

    y = mx.nd.Custom(x, op_type="shifted")
    graph = mx.sym.Custom(mx.sym.var("data"), op_type="shifted")

Graphs with such operators are called from any number of threads. ``forward`` runs in a thread of
its own, where it may use everything, including other models. Concurrent calls have separate
operator objects. An exception of ``forward`` is the ``__cause__`` of the MXNetError that reading
the results of that call raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from . import _mxrt
from .base import MXNetKeyError, MXNetTypeError, no_training

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
        if not name.isidentifier():
            continue  # Any attributes.
        names.append(name)
        types.append(f"{kind}, required" if default is None else f"{kind}, optional, default={default}")
    return OperatorArguments(len(names), names, types)


# ---- operators written in Python -----------------------------------------------------------------


class CustomOp:
    """An operator written in Python: subclasses define ``forward``."""

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        """Computes `out_data` from `in_data`; subclasses define it.

        Parameters
        ----------
        is_train : whether the call computes as in training
        req : for each output how it is to be written: ``write``, ``add`` or ``null``
        in_data : copies of the inputs
        out_data : arrays to be written; what is not written stays zero
        aux : copies of the auxiliary states; the states become what these hold in the end
        """

    def backward(
        self,
        req: list[str],
        out_grad: list[Any],
        in_data: list[Any],
        out_data: list[Any],
        in_grad: list[Any],
        aux: list[Any],
    ) -> None:
        """Would compute gradients: TrainingNotSupportedError. mxrt never calls it."""
        raise no_training(f"{type(self).__name__}.backward")

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Writes a result as `req` says: ``write`` and ``inplace`` overwrite, ``add`` adds,
        ``null`` does nothing.
        """
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src


class CustomOpProp:
    """The inputs and outputs of an operator written in Python: subclasses define
    ``create_operator``.
    """

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
        subclass says. A shape that is not known yet is ``[]``, an extent 0.
        """
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: list[Any]) -> tuple[Any, ...]:
        """Types of inputs, outputs and auxiliary states: that of the first input unless a subclass
        says.
        """
        first = in_type[0]
        return in_type, [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: list[str]) -> tuple[Any, ...]:
        """Storage of inputs, outputs and auxiliary states: ``default``, ``csr`` or ``row_sparse``.
        Subclasses say so for ``mx.nd.Custom``; in graphs operators in Python get dense arrays.
        """
        return in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states())

    def infer_storage_type_backward(
        self,
        ograd_stype: list[str],
        in_stype: list[str],
        out_stype: list[str],
        igrad_stype: list[str],
        aux_stype: list[str],
    ) -> tuple[Any, ...]:
        """Storage of gradients; never asked for."""
        return tuple(["default"] * len(one) for one in (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype))

    def declare_backward_dependency(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any]) -> list[Any]:
        """The values from which gradients would be computed."""
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """The operator for inputs and auxiliary states of these shapes and types (MXNet's numbers
        of types); subclasses define it. It serves one call at a time.
        """
        return CustomOp()


_Prop = TypeVar("_Prop", bound=type[CustomOpProp])
_CUSTOM: dict[str, type[CustomOpProp]] = {}


def register(reg_name: str) -> Callable[[_Prop], _Prop]:
    """A decorator that gives a subclass of CustomOpProp the name that ``op_type`` of ``Custom``
    nodes has. Other attributes of a node are keyword arguments of the class, as text.

    Register a name before a graph that uses it is made or loaded.

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
