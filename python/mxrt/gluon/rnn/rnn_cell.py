"""All cells, under the name of the module that MXNet has them in."""

from __future__ import annotations

from typing import Any

from ._sequences import as_list as _as_list
from ._sequences import first_states as _get_begin_state
from ._sequences import format_sequence as _format_sequence
from ._sequences import mask_sequence as _mask_sequence_variable_length
from ._sequences import reverse_sequence as _reverse_sequences
from .cells import GRUCell, LSTMCell, RNNCell
from .modifiers import BidirectionalCell, DropoutCell, ModifierCell, ResidualCell, ZoneoutCell
from .recurrent_cell import HybridRecurrentCell, RecurrentCell
from .sequential import HybridSequentialRNNCell, SequentialRNNCell

__all__ = [
    "BidirectionalCell",
    "DropoutCell",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
    "_as_list",
    "_cells_begin_state",
    "_cells_state_info",
    "_format_sequence",
    "_get_begin_state",
    "_mask_sequence_variable_length",
    "_reverse_sequences",
]


def _cells_state_info(cells: Any, batch_size: int) -> list[Any]:
    """Descriptions of the states of cells, one after the other."""
    return [info for cell in cells for info in cell.state_info(batch_size)]


def _cells_begin_state(cells: Any, **kwargs: Any) -> list[Any]:
    """First states of cells, one after the other."""
    return [state for cell in cells for state in cell.begin_state(**kwargs)]
