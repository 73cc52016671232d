"""mxrt and the engines it is compared with, behind one interface. Imports the engine that is asked
for and no other.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol, TypedDict

import numpy as np

__all__ = [
    "AS_INSTALLED",
    "ENGINES",
    "Arrays",
    "Engine",
    "Model",
    "NeedsOnnx",
    "cores",
    "load",
    "random_inputs",
    "settings",
]

Arrays = list[np.ndarray[Any, Any]]

AS_INSTALLED = " as installed"
"""Ends the name of an engine that computes in the precision that it chooses by itself."""


class Model(TypedDict):
    """The model to run: files of MXNet, the same model as ONNX if there is such a file, and the
    inputs' names.
    """

    symbol: str
    params: str | None
    onnx: str | None
    inputs: list[str]


class Engine(Protocol):
    """One engine with one model loaded."""

    version: str

    def own(self, arrays: Arrays) -> Any:
        """Inputs in the form that the engine likes best, kept by a caller."""

    def ask(self, inputs: Any) -> Arrays:
        """One request, from any thread, with what `own` returned or with numpy arrays."""


class NeedsOnnx(Exception):
    """The engine reads ONNX only, and there is no such file."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Places:
    """A number of places, each used by one caller at a time, in order of arrival."""

    def __init__(self, things: Iterable[Any]) -> None:
        self._free = list(things)
        self._waiting: deque[_Wanted] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Any]:
        """One of them, the one given back last if there is a choice: its memory is still warm."""
        wanted = _Wanted()
        with self._lock:
            if self._free:
                wanted.give(self._free.pop())
            else:
                self._waiting.append(wanted)
        wanted.there.wait()
        try:
            yield wanted.thing
        finally:
            with self._lock:
                if self._waiting:
                    self._waiting.popleft().give(wanted.thing)
                else:
                    self._free.append(wanted.thing)


class _Wanted:
    """The result that a caller waits for."""

    def __init__(self) -> None:
        self.thing: Any = None
        self.there = threading.Event()

    def give(self, thing: Any) -> None:
        self.thing = thing
        self.there.set()


class _MXNetApi:
    """mxrt, or MXNet itself: the same program. Blocks of MXNet are not safe from threads: one at a
    time.
    """

    def __init__(self, module: str, model: Model, setting: dict[str, Any]) -> None:
        self._mx = mx = importlib.import_module(module)
        self._model = model
        self.version: str = mx.__version__
        self.net = mx.gluon.SymbolBlock.imports(model["symbol"], model["inputs"], model["params"])
        if model["params"] is None:
            self.net.initialize()
        self.net.hybridize(static_alloc=True, static_shape=True, **setting)
        self._turn = _Places([None]).one if module == "mxnet" else nullcontext

    def own(self, arrays: Arrays) -> Any:
        with self._turn():
            return [self._mx.nd.array(one, dtype=one.dtype) for one in arrays]

    def ask(self, inputs: Any) -> Arrays:
        with self._turn():
            # The other engines read numpy's memory where it lies, too.
            feeds = [self._mx.nd.from_numpy(x) if isinstance(x, np.ndarray) else x for x in inputs]
            out = self._called(feeds)
            return [one.asnumpy() for one in (out if isinstance(out, (list, tuple)) else [out])]

    def _called(self, feeds: list[Any]) -> Any:
        try:
            return self.net(*feeds)
        except self._mx.base.MXNetError as error:
            if "non-differentiable" not in str(error):
                raise
        # Blocks of MXNet look for gradients, which some operators on integers do not have.
        symbol = self._mx.sym.load(self._model["symbol"])
        values = {name: one.data() for name, one in self.net.collect_params().items()}
        args = {**values, **{name: feeds[number] for number, name in enumerate(self._model["inputs"])}}
        states = {name: values[name] for name in symbol.list_auxiliary_states()}
        args = {name: args[name] for name in symbol.list_arguments()}
        return symbol.bind(self._mx.cpu(), args, aux_states=states, grad_req="null").forward(is_train=False)


class _OnnxRuntime:
    """Settings: `threads` of a request; `at_once`, the number of requests that compute concurrently
    (0: no limit).
    """

    def __init__(self, model: Model, setting: dict[str, Any]) -> None:
        ort: Any = importlib.import_module("onnxruntime")
        self.version: str = ort.__version__
        options = ort.SessionOptions()
        options.intra_op_num_threads = setting.get("threads", cores())
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = ort.InferenceSession(_onnx(model), options, providers=["CPUExecutionProvider"])
        held = {one.name for one in self._session.get_inputs()}
        self._inputs = _Inputs(model["inputs"], held)
        at_once: int = setting.get("at_once", 0)
        self._turn = _Places([None] * at_once).one if at_once else nullcontext

    def own(self, arrays: Arrays) -> Any:
        return [np.array(one) for one in arrays]

    def ask(self, inputs: Any) -> Arrays:
        with self._turn():
            return list(self._session.run(None, self._inputs.named(inputs)))


class _OpenVino:
    """Settings: those of compile_model; `requests`, how many infer requests the callers share.

    Without a precision OpenVINO computes in bfloat16 on processors that have it: it is pinned to
    float32, except `as_installed`.
    """

    def __init__(self, model: Model, setting: dict[str, Any], as_installed: bool = False) -> None:
        openvino: Any = importlib.import_module("openvino")
        self.version: str = openvino.__version__.partition("-")[0]
        core = openvino.Core()
        properties = setting if as_installed else {"INFERENCE_PRECISION_HINT": "f32", **setting}
        properties = dict(properties)
        requests: int = properties.pop("requests")
        self._compiled = core.compile_model(core.read_model(_onnx(model)), "CPU", properties)
        chosen = str(self._compiled.get_property("INFERENCE_PRECISION_HINT"))
        self.precision = "bf16" if "bfloat16" in chosen else "float16" if "float16" in chosen else "float32"
        held = {name for one in self._compiled.inputs for name in one.names}
        self._inputs = _Inputs(model["inputs"], held)
        self._requests = _Places(self._compiled.create_infer_request() for _ in range(requests))

    def own(self, arrays: Arrays) -> Any:
        return [np.array(one) for one in arrays]

    def ask(self, inputs: Any) -> Arrays:
        with self._requests.one() as request:
            results = request.infer(self._inputs.named(inputs), share_inputs=True)
            return [np.array(one) for one in results.values()]


class _Inputs:
    """Names for the inputs that an ONNX file has; labels, which only training reads, are left out
    of it.
    """

    def __init__(self, names: list[str], held: set[str]) -> None:
        self._places = [(name, place) for place, name in enumerate(names) if name in held]

    def named(self, inputs: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        return {name: inputs[place] for name, place in self._places}


def _onnx(model: Model) -> str:
    if model["onnx"] is None:
        raise NeedsOnnx("the model is not there as ONNX")
    return model["onnx"]


ENGINES: dict[str, Callable[[Model, dict[str, Any]], Engine]] = {
    "mxrt": lambda model, setting: _MXNetApi("mxrt", model, setting),
    "onnxruntime": _OnnxRuntime,
    "openvino": _OpenVino,
    f"openvino{AS_INSTALLED}": lambda model, setting: _OpenVino(model, setting, as_installed=True),
    "mxnet": lambda model, setting: _MXNetApi("mxnet", model, setting),
}


def settings(engine: str, callers: int, cores: int) -> dict[str, dict[str, Any]]:
    """Candidates for an engine's best configuration for a number of callers. mxrt has one for all
    of them.
    """
    if engine.startswith("openvino"):
        shared = {"requests": min(callers, 64)}
        ways: dict[str, dict[str, Any]] = {
            "latency hint": {"PERFORMANCE_HINT": "LATENCY", **shared},
            "throughput hint": {"PERFORMANCE_HINT": "THROUGHPUT", **shared},
        }
        if callers > 1:
            streams = {"NUM_STREAMS": str(cores), "INFERENCE_NUM_THREADS": str(cores)}
            ways["a stream for each core"] = {**streams, **shared}
            if callers > cores:
                ways["a stream and a request for each core"] = {**streams, "requests": cores}
        return ways
    if engine == "onnxruntime":
        threads: dict[str, dict[str, Any]] = {"all cores for a request": {"threads": cores}}
        if callers > 1:
            threads["all cores for a request, one at once"] = {"threads": cores, "at_once": 1}
            threads["one core for a request"] = {"threads": 1}
        if callers > cores > 1:
            threads[f"one core for a request, {cores} at once"] = {"threads": 1, "at_once": cores}
        return threads
    return {"as it comes": {}}


def load(engine: str, model: Model, setting: dict[str, Any]) -> Engine:
    """The engine with the model; ImportError when it is not installed here."""
    return ENGINES[engine](model, setting)


def random_inputs(shapes: Sequence[Sequence[int]], dtype: str = "float32") -> Arrays:
    """Random numbers between 0 and 1, equal in every process."""
    return [np.random.RandomState(seed).rand(*shape).astype(dtype) for seed, shape in enumerate(shapes)]
