"""Checkpoints: a symbol file and a parameter file side by side."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from . import symbol as symbols
from .base import MXNetValueError
from .ndarray import NDArray, save
from .ndarray import load as load_arrays

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["load_checkpoint", "load_params", "save_checkpoint"]


def load_params(prefix: str, epoch: int) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Arguments and auxiliary states of ``prefix-%04d.params``."""
    fname = f"{prefix}-{epoch:04d}.params"
    loaded = load_arrays(fname)
    arg_params: dict[str, NDArray] = {}
    aux_params: dict[str, NDArray] = {}
    if not loaded:
        warnings.warn(f"Params file '{fname}' is empty", stacklevel=2)
        return arg_params, aux_params
    if not isinstance(loaded, dict):
        raise MXNetValueError(
            f"'{fname}' holds {len(loaded)} arrays without names, so it is no checkpoint: names begin with arg: or aux:"
        )
    for full, array in loaded.items():
        kind, colon, name = full.partition(":")
        if not colon:
            raise MXNetValueError(
                f"'{fname}' is no checkpoint: names begin with arg: or aux:, but it holds '{full}'. "
                "Read it with mx.nd.load"
            )
        if kind == "arg":
            arg_params[name] = array
        elif kind == "aux":
            aux_params[name] = array
    return arg_params, aux_params


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """The symbol of ``prefix-symbol.json``, and arguments and auxiliary states of ``prefix-%04d.params``."""
    symbol = symbols.load(f"{prefix}-symbol.json")
    return (symbol, *load_params(prefix, epoch))


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: dict[str, NDArray],
    aux_params: dict[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Writes both files."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast)
    values = {f"arg:{name}": array for name, array in arg_params.items()}
    values.update({f"aux:{name}": array for name, array in aux_params.items()})
    save(f"{prefix}-{epoch:04d}.params", values)
