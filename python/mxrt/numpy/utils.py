"""Element types and constants of ``mx.np``."""

from __future__ import annotations

from builtins import bool  # MXNet's np.bool is Python's.

import numpy as onp

__all__ = [
    "NAN",
    "NINF",
    "NZERO",
    "PINF",
    "PZERO",
    "NaN",
    "bool",
    "bool_",
    "e",
    "finfo",
    "float16",
    "float32",
    "float64",
    "inf",
    "int8",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint8",
]

float16 = onp.float16
float32 = onp.float32
float64 = onp.float64
uint8 = onp.uint8
int8 = onp.int8
int32 = onp.int32
int64 = onp.int64
bool_ = onp.bool_

pi: float = onp.pi
e: float = onp.e
inf: float = onp.inf
PINF = inf
NINF = -onp.inf
nan: float = onp.nan
NaN: float = nan
NAN = nan
PZERO = 0.0
NZERO = -0.0
newaxis = None
finfo = onp.finfo
