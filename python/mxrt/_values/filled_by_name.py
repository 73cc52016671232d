"""Fillers of parameters, by their names."""

from __future__ import annotations

import math

import numpy as np

from ..base import MXNetValueError
from ..ndarray import NDArray
from ..ndarray import random as array_random

__all__ = ["OF_STRINGS", "OF_VARIABLES", "ByName", "bilinear", "filler"]

# What fills a parameter, by the beginning and the end of its name. The first row that fits counts.
Rows = tuple[tuple[str, str, str], ...]
OF_VARIABLES: Rows = (
    ("", "weight", "_init_weight"),
    ("", "bias", "_init_bias"),
    ("", "gamma", "_init_gamma"),
    ("", "beta", "_init_beta"),
    ("", "min", "_init_zero"),
    ("", "max", "_init_one"),
    ("", "weight_quantize", "_init_quantized_weight"),
    ("", "bias_quantize", "_init_quantized_bias"),
)
# A plain string has no attributes, which say how the state of a BatchNorm begins.
OF_STRINGS: Rows = (
    ("upsampling", "", "_init_bilinear"),
    ("stn_loc", "weight", "_init_zero"),
    ("stn_loc", "bias", "_init_loc_bias"),
    *OF_VARIABLES[:6],
    ("", "moving_mean", "_init_zero"),
    ("", "moving_var", "_init_one"),
    ("", "moving_inv_var", "_init_zero"),
    ("", "moving_avg", "_init_zero"),
)


def filler(rows: Rows, name: str) -> tuple[str, str]:
    """The end of a name, and what fills the parameter."""
    found = ((last, method) for first, last, method in rows if name.startswith(first) and name.endswith(last))
    return next(found, ("", "_init_default"))


def bilinear(name: str, arr: NDArray) -> None:
    """Writes the weights that enlarge images by bilinear interpolation. ValueError unless they have
    four axes.
    """
    if arr.ndim != 4:
        raise MXNetValueError(
            f"'{name}' has shape {arr.shape}; weights of a bilinear interpolation have four axes: channels, filters, "
            "height and width. Give the parameter such a shape, or another initializer"
        )
    height, width = arr.shape[2:]
    half = math.ceil(width / 2.0)
    centre = (2 * half - 1 - half % 2) / (2.0 * half)
    columns = 1 - np.abs(np.arange(width) / half - centre)
    rows = 1 - np.abs(np.arange(height) / half - centre)
    arr[:] = np.broadcast_to(np.outer(rows, columns).astype("float32"), arr.shape)


class ByName:
    """An initializer that fills a parameter by the end of its name. Subclasses may define how."""

    def _init_bilinear(self, name: str, arr: NDArray) -> None:
        bilinear(name, arr)

    def _init_loc_bias(self, name: str, arr: NDArray) -> None:
        if arr.shape[0] != 6:
            raise AssertionError(f"'{name}' has shape {arr.shape}; the six numbers of an affine map are expected")
        arr[:] = np.array([1, 0, 0, 0, 1, 0], "float32")

    def _init_zero(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_quantized_bias(self, name: str, arr: NDArray) -> None:
        arr[:] = 0

    def _init_gamma(self, name: str, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _init_weight")

    def _init_quantized_weight(self, name: str, arr: NDArray) -> None:
        """One random integer everywhere, as in MXNet."""
        arr[:] = array_random.randint(-127, 127).astype("int8").asscalar()

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise ValueError(
            f"Unknown initialization pattern for {name}. Names end with weight, bias, gamma or beta. Give others their "
            f"own initializer, as in mx.sym.var('{name}', init=mx.init.Zero()), or define _init_default in a subclass"
        )
