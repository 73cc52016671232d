"""The table of generated rows: of each operator, how a call of about `n` elements is made.

A module of this package adds the operators of one subject. `REASONS` says why an operator has no
row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Call = tuple[list[Any], dict[str, Any]]
Make = Callable[[int], Call]

# Elements of the array that a row is about: calls, a second-level cache, memory.
SIZES = {"small": 1 << 10, "cache": 1 << 18, "large": 1 << 24}


@dataclass(frozen=True)
class Stored:
    """An array in sparse storage."""

    array: Array
    kind: str


@dataclass(frozen=True)
class Row:
    """An operator and how its calls are made."""

    operator: str
    make: Make
    # The most elements: less than the large size where an element takes much time or memory.
    most: int = SIZES["large"]
    # The memory limits a large call: elementwise functions, copies, transposes.
    streams: bool = False
    # The result is written into the first array.
    in_place: bool = False

    def sizes(self) -> dict[str, int]:
        """Elements, by the name of the size; the large one is left out where it is not larger."""
        found = {name: min(count, self.most) for name, count in SIZES.items()}
        kept: dict[str, int] = {}
        for name, count in found.items():
            if count not in kept.values():
                kept[name] = count
        return kept


# By name: that of the operator, with the variant of the call after a colon.
CASES: dict[str, Row] = {}
REASONS: dict[str, str] = {}


def add(names: str, make: Make, most: int = SIZES["large"], streams: bool = False, in_place: bool = False) -> None:
    """Adds a row for each of the names."""
    for name in names.split():
        if name in CASES:
            raise ValueError(f"{name} has two rows")
        CASES[name] = Row(name.partition(":")[0], make, most, streams, in_place)


def leave_out(reason: str, names: str) -> None:
    """Says why these operators have no row."""
    REASONS.update(dict.fromkeys(names.split(), reason))


def given(*inputs: Any, **attrs: Any) -> Call:
    """A call with these arrays and attributes."""
    return list(inputs), attrs


# ---- arrays ----


def uniform(shape: int | tuple[int, ...], low: float = -2, high: float = 2) -> Array:
    """Random numbers of float32."""
    numbers: Array = np.random.default_rng(0).random(shape, dtype="float32")
    numbers *= high - low
    numbers += low
    return numbers


def integers(shape: int | tuple[int, ...], top: int, dtype: str = "float32") -> Array:
    """Random whole numbers from 0 to less than `top`, such as indices."""
    return np.random.default_rng(1).integers(0, top, shape).astype(dtype)


def bytes_of(shape: int | tuple[int, ...], dtype: str = "int8") -> Array:
    """Random numbers of 8 bits."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(2).integers(limits.min, limits.max, shape, dtype=dtype)


def number(value: float) -> Array:
    """One number of float32."""
    return np.array([value], "float32")


def definite(count: int, n: int) -> Array:
    """Symmetric matrices with positive eigenvalues."""
    a = uniform((count, n, n), -1, 1)
    return (a @ a.transpose(0, 2, 1) / n + np.eye(n, dtype="float32")).astype("float32")


# ---- shapes of n elements, a power of two ----


def line(n: int) -> tuple[int, ...]:
    """One axis."""
    return (n,)


def square(n: int) -> tuple[int, int]:
    """Two axes that are equal, or almost."""
    side = 1 << (n.bit_length() - 1) // 2
    return side, n // side


def cube(n: int) -> tuple[int, int, int]:
    """A batch of 8 for small sizes and 32 for others, and two almost equal axes."""
    count = 8 if n <= 1 << 12 else 32
    return (count, *square(n // count))


def image(n: int) -> tuple[int, int, int, int]:
    """Batch, channels, height and width."""
    side = 16 if n <= 1 << 10 else 64 if n <= 1 << 20 else 128
    channels = min(64, n // side**2)
    return n // (channels * side**2), channels, side, side


def picture(n: int) -> tuple[int, int, int]:
    """Height, width and three colours."""
    side = max(2, int((n / 3) ** 0.5) // 2 * 2)
    return side, side, 3


def sequence(n: int) -> tuple[int, int, int]:
    """Steps, batch and features."""
    features = 64 if n <= 1 << 12 else 512
    rows = n // features
    steps = 1 << ((rows.bit_length() - 1) + 1) // 2
    return steps, rows // steps, features
