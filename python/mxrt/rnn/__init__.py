"""Recurrent networks of the symbolic interface: ``mx.rnn``."""

from ..io import DataBatch, DataDesc, DataIter
from . import io, rnn, rnn_cell
from .io import BucketSentenceIter, encode_sentences
from .rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from .rnn_cell import *  # noqa: F403

__all__ = [
    "BucketSentenceIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "do_rnn_checkpoint",
    "encode_sentences",
    "io",
    "load_rnn_checkpoint",
    "rnn",
    "rnn_cell",
    "rnn_unroll",
    "save_rnn_checkpoint",
]
__all__ += rnn_cell.__all__
