"""The functions of `code/inference.py` in a model of Amazon SageMaker, for
`mxrt serve --sagemaker-code`.

The server keeps its limits, queues and logs: it calls the functions as it calls hooks. They answer
a request on their own, so the server's own model only passes the bytes of the answer on.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import json
import os
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import MXNetValueError

if TYPE_CHECKING:
    from ._hooks import Request

__all__ = ["Script", "as_hooks", "find", "make_carrier", "use"]

#: The functions that a script may define, with the arguments that they are called with.
_FUNCTIONS = {
    "pre_model_fn": ("model_dir",),
    "model_fn": ("model_dir",),
    "model_warmup_fn": ("model_dir", "model"),
    "transform_fn": ("model", "input_data", "content_type", "accept"),
    "input_fn": ("input_data", "content_type"),
    "predict_fn": ("data", "model"),
    "output_fn": ("prediction", "accept"),
}
#: The functions whose place `transform_fn` takes.
_STEPS = ("input_fn", "predict_fn", "output_fn")
#: Types of bodies that functions get as text.
_TEXT = ("application/json", "text/csv")
_DEFAULT = "application/json"
_LENGTHS = struct.Struct("<QQ")
_LEAST = 4096

_place: tuple[Path, Path] | None = None


def find(folder: Path) -> Path:
    """The script of a model's folder: `code/inference.py`, or the file or module that
    SAGEMAKER_PROGRAM names.

    Raises MXNetValueError if there is none.
    """
    program = os.environ.get("SAGEMAKER_PROGRAM", "inference").removesuffix(".py") + ".py"
    said = os.environ.get("SAGEMAKER_SUBMIT_DIRECTORY", "")
    places = [*([Path(said)] if said.startswith("/") else []), folder / "code", folder]
    found = next((place / program for place in places if (place / program).is_file()), None)
    if found is None:
        raise MXNetValueError(
            f"--sagemaker-code: there is no '{program}' in '{folder / 'code'}': put it there, or name it by "
            "SAGEMAKER_PROGRAM; without the option the server answers by the model itself"
        )
    return found


def use(script: Path, folder: Path) -> None:
    """Says which file of hooks is a script, and the folder of its model."""
    global _place
    _place = script, folder


def as_hooks(file: str | os.PathLike[str]) -> SimpleNamespace | None:
    """Loads the script that :func:`use` named, as hooks; None for another file."""
    if _place is None or Path(file) != _place[0]:
        return None
    script = Script(*_place)
    return SimpleNamespace(preprocess=script.answer, postprocess=script.response)


def make_carrier(folder: Path) -> Path:
    """Writes the model that passes bytes on, and returns its prefix."""
    from .. import ndarray, symbol

    prefix = folder / "script"
    symbol.identity(symbol.var("data"), name="answer").save(f"{prefix}-symbol.json")
    ndarray.save(f"{prefix}-0000.params", {})
    return prefix


class _RefusedError(ValueError):
    """An error of the client in the words of the script; the answer has a code of its own."""


class Script:
    """A script whose model is loaded. Its functions may be called by several threads."""

    def __init__(self, file: Path, folder: Path) -> None:
        module = _module(file)
        context = SimpleNamespace(
            model_name="model",
            system_properties={"model_dir": str(folder), "gpu_id": None, "batch_size": 1, "server_name": "mxrt"},
            manifest=None,
        )
        self._functions = {name: _function(module, name, context) for name in _FUNCTIONS}
        if not any(self._functions.values()):
            raise MXNetValueError(f"it defines none of {', '.join(_FUNCTIONS)}")
        if self._functions["transform_fn"] and any(self._functions[name] for name in _STEPS):
            raise MXNetValueError(f"it defines transform_fn, which takes the place of {', '.join(_STEPS)}: remove one")
        if before := self._functions["pre_model_fn"]:
            before(str(folder))
        self._model = (self._functions["model_fn"] or default_model)(str(folder))
        if after := self._functions["model_warmup_fn"]:
            after(str(folder), self._model)
        self._turns: AbstractContextManager[Any] = nullcontext()
        workers = os.environ.get("SAGEMAKER_MODEL_SERVER_WORKERS", "")
        if workers.isdecimal() and int(workers) > 0:
            self._turns = threading.BoundedSemaphore(int(workers))

    def answer(self, request: Request) -> np.ndarray[Any, Any]:
        """The bytes of the answer, packed for the server's own model."""
        kind = request.headers.get("content-type") or _DEFAULT
        accept = request.headers.get("accept") or "*/*"
        if accept == "*/*":
            accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", _DEFAULT)
        media = kind.partition(";")[0].strip().lower()
        data: bytes | str = request.body
        if media in _TEXT:
            data = request.body.decode()  # UnicodeDecodeError is a ValueError: the client's
        with self._turns:
            try:
                made = self._transform(data, kind, accept)
            except Exception as error:
                if _is_clients(error):
                    raise _RefusedError(str(getattr(error, "message", error))) from error
                raise
        body, kind = made if isinstance(made, tuple) and len(made) == 2 else (made, accept)
        return _packed(_bytes(body), str(kind))

    def _transform(self, data: bytes | str, kind: str, accept: str) -> Any:
        of = self._functions
        if of["transform_fn"]:
            return of["transform_fn"](self._model, data, kind, accept)
        prediction = (of["predict_fn"] or default_predict)((of["input_fn"] or default_input)(data, kind), self._model)
        return (of["output_fn"] or default_output)(prediction, accept)

    @staticmethod
    def response(arrays: dict[str, Any]) -> tuple[bytes, str]:
        """Body and content type of what :meth:`answer` packed."""
        (array,) = arrays.values()
        content = array.tobytes()
        kind, body = _LENGTHS.unpack_from(content)
        start = _LENGTHS.size + kind
        return content[start : start + body], content[_LENGTHS.size : start].decode()


def _is_clients(error: Exception) -> bool:
    """Returns whether an exception says that the request is wrong: by its class, or by the status
    that classes of SageMaker's toolkit have.
    """
    status = getattr(error, "status_code", None)
    named = type(error).__name__ == "UnsupportedFormatError"
    return isinstance(error, ValueError) or named or (isinstance(status, int) and 400 <= status < 500)


def _module(file: Path) -> ModuleType:
    """Imports a script. `import mxnet` in it finds mxrt, and its own folder is searched first."""
    from .. import install_as_mxnet

    install_as_mxnet()
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise MXNetValueError("a script is a file of Python, and its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        wants = file.with_name("requirements.txt")
        if wants.is_file():
            raise MXNetValueError(f"{error}: requirements.txt is not installed; install it in the image") from error
        raise
    return module


def _function(module: ModuleType, name: str, context: SimpleNamespace) -> Callable[..., Any] | None:
    """Returns a function of a script. One that wants one more argument gets the context."""
    found: Any = getattr(module, name, None)
    if found is None:
        return None
    if not callable(found):
        raise MXNetValueError(f"{name} is no function")
    arguments = _FUNCTIONS[name]
    function: Callable[..., Any] = found
    if _takes(found, len(arguments)):
        return function
    if _takes(found, len(arguments) + 1):
        return lambda *given: function(*given, context)
    raise MXNetValueError(
        f"{name} is called with {', '.join(arguments)}, and with the context if it wants that; it takes other arguments"
    )


def _takes(function: Any, count: int) -> bool:
    """Returns whether a function can be called with this number of positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin says nothing about its arguments
        pass
    return True


def default_model(folder: str) -> Any:
    """The model of a folder. A Module where `model-shapes.json` gives its shapes, as SageMaker's
    toolkit makes it; otherwise a SymbolBlock.
    """
    from .. import module, ndarray
    from ..cli import _model
    from ..gluon import SymbolBlock
    from ..model import load_params

    files = _model.find(folder)
    graph = _model.load(files)
    shapes = _model.note(files.folder, "model-shapes.json")
    if shapes is not None:
        described = [(entry["name"], tuple(entry["shape"])) for entry in shapes]
        made = module.Module(graph, data_names=[name for name, _ in described], label_names=None)
        made.bind(data_shapes=described, for_training=False)
        epoch = int(files.params.stem.rpartition("-")[2]) if files.params is not None else 0
        made.set_params(*load_params(str(files.folder / files.name), epoch), allow_missing=True)
        return made
    stored = {name.partition(":")[2] or name for name in (ndarray.load(str(files.params)) if files.params else {})}
    inputs = [name for name in graph.list_inputs() if name not in stored and name not in graph._labels()]
    return SymbolBlock.imports(str(files.symbol), inputs, str(files.params) if files.params else None)


def default_input(data: bytes | str, content_type: str) -> Any:
    """An array of float32 from JSON, CSV or a .npy file."""
    from .. import ndarray

    media = content_type.partition(";")[0].strip().lower()
    if media == "application/json":
        made = np.array(json.loads(data), np.float32)
    elif media == "text/csv":
        made = np.loadtxt(io.StringIO(str(data)), np.float32, delimiter=",", ndmin=2)
    elif media == "application/x-npy" and isinstance(data, bytes):
        made = np.load(io.BytesIO(data), allow_pickle=False)
    else:
        raise MXNetValueError(
            f"'{content_type}' is none of application/json, text/csv and application/x-npy: define input_fn for it"
        )
    return ndarray.array(made)


def default_predict(data: Any, model: Any) -> Any:
    """Calls the model on the data."""
    from .. import io as iterators
    from ..module import Module

    if isinstance(model, Module):
        rows = model.data_shapes[0].shape[0]
        return model.predict(iterators.NDArrayIter(data, batch_size=rows, last_batch_handle="pad"))
    return model(data)


def default_output(prediction: Any, accept: str) -> tuple[bytes | str, str]:
    """Arrays as JSON, CSV or a .npy file: the first of these types that the client accepts."""
    several = prediction if isinstance(prediction, (list, tuple)) else [prediction]
    arrays = [one.asnumpy() if hasattr(one, "asnumpy") else np.asarray(one) for one in several]
    for kind in (part.partition(";")[0].strip().lower() for part in accept.split(",")):
        if kind in ("application/json", "application/*", "*/*"):
            lists = [array.tolist() for array in arrays]
            return json.dumps(lists[0] if len(lists) == 1 else lists), _DEFAULT
        if kind in ("application/x-npy", "text/csv") and len(arrays) == 1:
            return _file(arrays[0], kind), kind
    raise MXNetValueError(
        f"the answer is there as application/json, application/x-npy or text/csv, and not as '{accept}' (Accept): "
        "define output_fn for it"
    )


def _file(array: np.ndarray[Any, Any], kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "text/csv":
        np.savetxt(file, array.reshape(array.shape[0], -1) if array.ndim != 2 else array, "%.9g", ",")
    else:
        np.save(file, array)
    return file.getvalue()


def _bytes(body: Any) -> bytes:
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _packed(body: bytes, kind: str) -> np.ndarray[Any, Any]:
    """Lengths, content type and body. Sizes are few, as each is a plan of the server's model."""
    name = kind.encode()
    content = _LENGTHS.pack(len(name), len(body)) + name + body
    size = max(_LEAST, 1 << (len(content) - 1).bit_length())
    packed = np.zeros(size, np.uint8)
    packed[: len(content)] = np.frombuffer(content, np.uint8)
    return packed
