"""Sequences as one array, or as a list of one array for every step."""

from __future__ import annotations

from typing import Any

from ... import ndarray, symbol
from ...ndarray import NDArray
from ...symbol import Symbol

__all__ = [
    "as_list",
    "first_states",
    "format_sequence",
    "is_tensor",
    "mask_sequence",
    "reverse_sequence",
]


def is_tensor(value: Any) -> bool:
    """Whether this is one array or symbol."""
    return isinstance(value, (NDArray, Symbol))


def as_list(value: Any) -> list[Any]:
    """A list, also of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def format_sequence(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int, Any, int]:
    """A sequence in the form asked for, its axis of time, ``mx.nd`` or ``mx.sym``, and the size of
    the batch.

    With `merge` it becomes one array, with False a list, with None it stays what it is.
    """
    axis, batch_axis = layout.find("T"), layout.find("N")
    in_axis = axis if in_layout is None else in_layout.find("T")
    batch = 0
    F: Any = ndarray
    if isinstance(inputs, Symbol):
        F = symbol
        if merge is False:
            if len(inputs) != 1:
                raise AssertionError(
                    "unroll doesn't allow grouped symbol as input. Please convert to list with list(inputs) first or "
                    "let unroll handle splitting."
                )
            inputs = list(F.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=1))
    elif isinstance(inputs, NDArray):
        batch = inputs.shape[batch_axis]
        steps = inputs.shape[in_axis]
        if merge is False:
            if length is not None and length != steps:
                raise AssertionError(f"unroll over {length} steps was given a sequence of {steps}")
            inputs = as_list(F.split(inputs, axis=in_axis, num_outputs=steps, squeeze_axis=1))
    elif inputs is None:
        raise AssertionError("unroll(inputs=None) is not supported. Please create input variables outside unroll.")
    else:
        if length is not None and len(inputs) != length:
            raise AssertionError(f"unroll over {length} steps was given a list of {len(inputs)}")
        if isinstance(inputs[0], Symbol):
            F = symbol
        else:
            batch = inputs[0].shape[0]
        if merge:
            inputs, in_axis = F.stack(*inputs, axis=axis), axis
    if is_tensor(inputs) and axis != in_axis:
        inputs = F.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis, F, batch


def first_states(cell: Any, F: Any, given: Any, inputs: Any, batch: int) -> Any:
    """The states given, or the cell's first ones where the inputs are."""
    if given is not None:
        return given
    if F is not ndarray:
        return cell.begin_state(func=F.zeros, batch_size=batch)
    with (inputs if is_tensor(inputs) else inputs[0]).context:
        return cell.begin_state(func=F.zeros, batch_size=batch)


def mask_sequence(F: Any, data: Any, length: int, valid_length: Any, axis: int, merge: bool | None) -> Any:
    """A sequence with zeros after the length of each row: one array, or a list without `merge`."""
    if not is_tensor(data):
        data = F.stack(*data, axis=axis)
    masked = F.SequenceMask(data, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    if merge:
        return masked
    return as_list(F.split(masked, num_outputs=length, axis=axis, squeeze_axis=True))


def reverse_sequence(steps: list[Any], length: int, valid_length: Any = None) -> list[Any]:
    """The steps in reverse; with lengths, each row's valid ones in reverse and the rest where it
    is.
    """
    F: Any = symbol if isinstance(steps[0], Symbol) else ndarray
    if valid_length is None:
        return steps[::-1]
    turned = F.SequenceReverse(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True)
    if F is ndarray and length == 1:
        return [turned[0]]
    return as_list(list(F.split(turned, axis=0, num_outputs=length, squeeze_axis=True)))
