"""The common part of recurrent cells of the symbolic interface."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import ndarray as nd
from .. import symbol
from ..ndarray import NDArray
from ..symbol import Symbol

__all__ = ["BaseRNNCell", "RNNParams", "as_sequence"]

_Arrays = dict[str, NDArray]


def as_sequence(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int]:
    """Inputs of all steps as one symbol (`merge`), as a list (not `merge`) or as they are (None);
    and the axis of time.

    Where a symbol has to be cut, `length` says into how many steps.
    """
    if inputs is None:
        raise AssertionError("unroll: inputs are needed; make variables for them first")
    axis = layout.find("T")
    in_axis = axis if in_layout is None else in_layout.find("T")
    if isinstance(inputs, Symbol):
        if merge is False:
            if len(inputs) != 1:
                raise AssertionError("unroll: a symbol with several outputs; give list(inputs)")
            if length is None:
                raise AssertionError("unroll: length is needed to cut a symbol into steps")
            as_written: Any = 1  # MXNet's files show it so
            inputs = list(symbol.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=as_written))
    else:
        if length is not None and len(inputs) != length:
            raise AssertionError(f"unroll: {len(inputs)} inputs for {length} steps")
        if merge:
            inputs = symbol.Concat(*[symbol.expand_dims(one, axis=axis) for one in inputs], dim=axis)
            in_axis = axis
    if isinstance(inputs, Symbol) and axis != in_axis:
        inputs = symbol.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis


class RNNParams:
    """Variables of parameters by name, with a prefix; several cells may share them."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """The variable of this name, without the prefix; a new one if there is none."""
        full = self._prefix + name
        if full not in self._params:
            self._params[full] = symbol.Variable(full, **kwargs)
        return self._params[full]


class BaseRNNCell:
    """A step of a recurrent network: called with inputs and states it gives an output and the next
    states.

    ``unroll`` makes a network of many steps. Subclasses define ``__call__`` and ``state_info``, and
    ``_gate_names`` if their weights are the concatenated weights of several gates.
    """

    _num_hidden: int

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._prefix = prefix
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Begins again to count steps, before the cell is used for another network."""
        self._init_counter = -1
        self._counter = -1
        for cell in getattr(self, "_cells", []):
            cell.reset()

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        raise NotImplementedError

    def _step_name(self) -> str:
        """The prefix of the names of the next step's operators."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    @property
    def params(self) -> RNNParams:
        """The variables of the parameters."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; an extent of 0 is not known."""
        raise NotImplementedError

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shape of each state."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Sequence[str]:
        return ()

    def _check_unmodified(self) -> None:
        if self._modified:
            raise AssertionError(
                "After applying modifier cells (e.g. DropoutCell) the base cell cannot be called directly. Call the "
                "modifier cell instead."
            )

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:
        """The first states: what `func` makes of name, shape and layout; zeros without it."""
        self._check_unmodified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**kwargs, **info}))
        return states

    def unpack_weights(self, args: Mapping[str, NDArray]) -> _Arrays:
        """The parameters of a model, with those of this cell cut into gates."""
        found = dict(args)
        names = self._gate_names
        for group in ("i2h", "h2h") if names else ():
            for kind in ("weight", "bias"):
                whole = found.pop(f"{self._prefix}{group}_{kind}")
                for place, gate in enumerate(names):
                    part = whole[place * self._num_hidden : (place + 1) * self._num_hidden]
                    found[f"{self._prefix}{group}{gate}_{kind}"] = part.copy()
        return found

    def pack_weights(self, args: Mapping[str, NDArray]) -> _Arrays:
        """The parameters of a model, with the gates of this cell joined, as the network wants
        them.
        """
        found = dict(args)
        names = self._gate_names
        for group in ("i2h", "h2h") if names else ():
            for kind in ("weight", "bias"):
                parts = [found.pop(f"{self._prefix}{group}{gate}_{kind}") for gate in names]
                found[f"{self._prefix}{group}_{kind}"] = nd.concatenate(parts)
        return found

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Any]]:
        """A network of `length` steps: outputs and last states.

        Inputs are a symbol with an axis of time, as `layout` says, or a list. Outputs are one
        symbol with ``merge_outputs=True``, else a list.
        """
        self.reset()
        steps, _ = as_sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for step in range(length):
            output, states = self(steps[step], states)
            outputs.append(output)
        merged, _ = as_sequence(length, outputs, layout, merge_outputs)
        return merged, states

    @staticmethod
    def _get_activation(inputs: Any, activation: Any, **kwargs: Any) -> Any:
        if isinstance(activation, str):
            activation = functools.partial(symbol.Activation, act_type=activation)  # type: ignore[arg-type]  # any name
        return activation(inputs, **kwargs)
