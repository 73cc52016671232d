"""The cells under the name of MXNet's module."""

from ._base import BaseRNNCell, RNNParams
from ._cells import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell, GRUCell, LSTMCell, RNNCell
from ._fused import FusedRNNCell
from ._modifiers import (
    BidirectionalCell,
    DropoutCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)

__all__ = [
    "BaseConvRNNCell",
    "BaseRNNCell",
    "BidirectionalCell",
    "ConvGRUCell",
    "ConvLSTMCell",
    "ConvRNNCell",
    "DropoutCell",
    "FusedRNNCell",
    "GRUCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RNNParams",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]
