"""Further recurrent cells: ``mx.gluon.contrib.rnn``."""

from . import conv_rnn_cell
from .conv_rnn_cell import *  # noqa: F403
from .rnn_cell import LSTMPCell, VariationalDropoutCell

__all__ = ["LSTMPCell", "VariationalDropoutCell"]
__all__ += conv_rnn_cell.__all__
