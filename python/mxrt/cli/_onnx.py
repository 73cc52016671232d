"""Models as ONNX files, and the answers of such a file."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bench import to_onnx
from ._errors import ModelError

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..symbol import Symbol

__all__ = ["answers", "write"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
# Protocol buffers have no longer messages, and a little of it is the graph.
_MOST_BYTES = (1 << 31) - (1 << 24)


def write(
    target: Path, graph: Symbol, values: Mapping[str, NDArray], shapes: Mapping[str, Shape], dtypes: Mapping[str, str]
) -> None:
    """Writes a graph with its parameters, for inputs of these shapes, whole or not at all.

    ModelError for an operator without translation, or an input that is not float32.
    """
    for name in shapes:
        if dtypes.get(name, "float32") != "float32":
            raise ModelError(f"the input '{name}' is {dtypes[name]}; a model is written as ONNX with inputs of float32")
    size = 4 * sum(one.size for one in values.values())
    if size > _MOST_BYTES:
        raise ModelError(
            f"the parameters have {size / 1e9:.1f} GB in float32, and an ONNX file at most 2 GB; --format safetensors "
            "has no such limit"
        )
    try:
        to_onnx.export(graph, {name: _float32(one) for name, one in values.items()}, shapes, target)
    except to_onnx.Untranslatable as error:
        raise ModelError(f"the model cannot be written as ONNX: {error}. {error.remedy}") from None
    except OSError as error:
        raise ModelError(f"'{target}' cannot be written: {error.strerror}; nothing was saved") from None


def _float32(value: NDArray) -> Array:
    found: Array = value.astype("float32").asnumpy()
    return found


def answers(file: Path, given: Mapping[str, Array]) -> tuple[str, list[Array]] | None:
    """The version of onnxruntime and its answers; None where it is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    batch = int(inputs[0].shape[0]) if inputs else 1
    rows = next(iter(given.values())).shape[0]
    parts = []
    # The batch of the file is fixed: the last part is filled up with its last row.
    for first in range(0, rows, batch):
        chosen = np.minimum(np.arange(first, first + batch), rows - 1)
        parts.append(session.run(None, {one.name: given[one.name][chosen].astype("float32") for one in inputs}))
    if rows == batch:
        return runtime.__version__, parts[0]
    return runtime.__version__, [np.concatenate(column)[:rows] for column in zip(*parts, strict=True)]
