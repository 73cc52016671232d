"""All cells, under the name of the module that MXNet has them in."""

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
    "_format_sequence",
    "_get_begin_state",
    "_mask_sequence_variable_length",
    "_reverse_sequences",
]
