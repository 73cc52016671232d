"""Checkpoints whose weights are those of single gates."""

from __future__ import annotations

import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable, Mapping
from typing import Any

from ..base import warn
from ..model import load_checkpoint, save_checkpoint
from ..ndarray import NDArray
from ..symbol import Symbol
from ._base import BaseRNNCell

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]

_Cells = BaseRNNCell | list[BaseRNNCell]


def _listed(cells: _Cells) -> list[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else list(cells)


def rnn_unroll(
    cell: BaseRNNCell,
    length: int,
    inputs: Any = None,
    begin_state: Any = None,
    input_prefix: str = "",
    layout: str = "NTC",
) -> tuple[Any, list[Any]]:
    """An old form of ``cell.unroll``."""
    warn("rnn_unroll is deprecated. Please call cell.unroll directly.")
    return cell.unroll(length, inputs, begin_state=begin_state, layout=layout)


def save_rnn_checkpoint(
    cells: _Cells,
    prefix: str,
    epoch: int,
    symbol: Symbol,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
) -> None:
    """Writes a checkpoint in which the weights of the cells are cut into gates."""
    found = dict(arg_params)
    for cell in _listed(cells):
        found = cell.unpack_weights(found)
    save_checkpoint(prefix, epoch, symbol, found, dict(aux_params))


def load_rnn_checkpoint(
    cells: _Cells, prefix: str, epoch: int
) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Symbol, arguments and auxiliary states of a checkpoint, with the gates of the cells
    joined.
    """
    symbol, args, aux = load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        args = cell.pack_weights(args)
    return symbol, args, aux


def do_rnn_checkpoint(cells: _Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback that writes such a checkpoint after every `period` epochs."""
    period = int(max(1, period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return save
