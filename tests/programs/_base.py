"""Helpers of the programs."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gluon_cases import plain as rounded

__all__ = ["MODELS", "PROGRAMS", "Batch", "checkpoint", "evaluation", "program", "rounded", "softmaxed"]

MODELS = Path(__file__).parent.parent / "models"

Batch = namedtuple("Batch", ["data"])

PROGRAMS: dict[str, Callable] = {}


def program(run: Callable) -> Callable:
    PROGRAMS[run.__name__] = run
    return run


def checkpoint(name: str) -> str:
    return str(MODELS / name / name)


def evaluation(name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and labels of a trained model."""
    with np.load(MODELS / name / "eval.npz") as saved:
        return saved["in.data"][:count], saved["label"][:count].astype("float32")


def softmaxed(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)
