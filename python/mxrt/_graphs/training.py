"""Graphs that compute as in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _mxrt

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["CUSTOM_TRAINS", "training_form"]

CUSTOM_TRAINS = _mxrt.CUSTOM_TRAINS
"""An attribute of Custom nodes in such a graph; no keyword of a program has this name."""


def training_form(symbol: Symbol, outside: bool = True, inside: bool = True) -> Symbol:
    """A graph that computes what `symbol` computes while training; `symbol` itself where that is
    the same.

    `outside` and `inside` say what trains: the operators outside loops and branches, and those
    inside. For executors of MXNet `is_train` decides outside, and the mode of the thread inside.
    """
    form: Symbol | None = symbol._in_training(outside, inside)
    return symbol if form is None else form
