"""Models as ONNX files: writing, of what mxrt translates. Reading is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...base import MXNetError, MXNetNotImplementedError, MXNetTypeError, MXNetValueError

if TYPE_CHECKING:
    from ...ndarray import NDArray
    from ...symbol import Symbol

_READ = (
    "reading ONNX files is not part of mxrt. Convert the file once with MXNet 1.9.1: mx.contrib.onnx.import_model, "
    "then mx.model.save_checkpoint, whose files mxrt loads"
)

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]

Shape = tuple[int, ...]


def import_model(model_file: str) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError(f"contrib.onnx.import_model: {_READ}")


def import_to_gluon(model_file: str, ctx: Any) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError(f"contrib.onnx.import_to_gluon: {_READ}")


def get_model_metadata(model_file: str) -> NoReturn:
    """Refused: ONNX files are not read."""
    raise MXNetNotImplementedError(f"contrib.onnx.get_model_metadata: {_READ}")


def export_model(
    sym: str | Symbol,
    params: str | Mapping[str, NDArray] | Sequence[Mapping[str, NDArray]],
    in_shapes: Sequence[Shape] | None = None,
    in_types: Any = "float32",
    onnx_file_path: str = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Sequence[Shape] | None = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Sequence[Shape] | None = None,
) -> str:
    """Writes a model as an ONNX file, and returns the path of the file.

    `sym` and `params` are objects or files, `in_shapes` the shapes of the inputs, labels left out,
    in the order of the symbol. The file is in float32 and for inputs of these shapes:
    MXNetNotImplementedError for other element types, for `dynamic`, and for operators without
    translation; MXNetValueError for shapes that are not one for each input; MXNetError for a file
    that cannot be written.
    """
    import numpy as np

    from ...bench import to_onnx

    shapes = in_shapes if in_shapes is not None else input_shape
    types = in_types if input_type is None else input_type
    for one in types if isinstance(types, (list, tuple)) else [types]:
        if np.dtype(one) != np.float32:
            raise MXNetNotImplementedError(f"onnx.export_model: in_types has {np.dtype(one)}; expected float32")
    if dynamic or dynamic_input_shapes is not None:
        raise MXNetNotImplementedError("onnx.export_model: dynamic shapes are not written; leave dynamic out")
    graph = _graph(sym)
    values = _values(params)
    labels = set(graph._labels())
    names = [name for name in graph.list_inputs() if name not in values and name not in labels]
    if shapes is None or len(shapes) != len(names):
        raise MXNetValueError(
            f"onnx.export_model: in_shapes has {0 if shapes is None else len(shapes)} shapes; expected one for each of "
            f"the inputs {', '.join(names)}"
        )
    known = dict(zip(names, map(tuple, shapes), strict=True))
    inferred = graph._shapes_with_labels(known) if labels else {}
    known |= {name: tuple(inferred[name]) for name in labels if inferred.get(name)}
    try:
        to_onnx.export(graph, values, known, Path(onnx_file_path))
    except to_onnx.Untranslatable as error:
        raise MXNetNotImplementedError(f"onnx.export_model: {error}. {error.remedy}") from None
    except OSError as error:
        raise MXNetError(f"onnx.export_model: '{onnx_file_path}' cannot be written: {error.strerror}") from error
    return onnx_file_path


def _graph(sym: str | Symbol) -> Symbol:
    from ... import symbol as symbols

    if isinstance(sym, str):
        return symbols.load(sym)
    if isinstance(sym, symbols.Symbol):
        return sym
    raise MXNetTypeError(f"onnx.export_model: sym is {type(sym).__name__}; expected a Symbol or the name of its file")


def _values(params: Any) -> dict[str, Any]:
    """Parameters as numpy arrays of float32 by name."""
    from ...gluon.parameter_dict import named_arrays, strip_kind

    if isinstance(params, str):
        params = named_arrays(params)
    parts = params if isinstance(params, (list, tuple)) else [params]
    if not all(isinstance(part, Mapping) for part in parts):
        raise MXNetTypeError(
            f"onnx.export_model: params is {type(params).__name__}; expected a file, a dictionary of arrays by name, "
            "or a list of such dictionaries"
        )
    return {strip_kind(name): one.astype("float32").asnumpy() for part in parts for name, one in part.items()}
