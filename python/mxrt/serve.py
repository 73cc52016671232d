"""Serving models over HTTP and gRPC: the command `mxrt serve`, and ``mxrt.serve.Server``.

The server speaks the Open Inference Protocol, version 2. Its threads are those of the Rust engine;
no Python runs per request.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from . import _mxrt, _serve_places
from .base import MXNetError, MXNetNotImplementedError, MXNetValueError
from .bench.model import UsageError, find

__all__ = ["Model", "Server", "add_arguments", "main"]

GRACE = 25.0
_LAST_PORT = 65535
_SIZES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FP16", "BF16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FP64"), 8),
}


@dataclass(frozen=True)
class Model:
    """A model to be served.

    Parameters
    ----------
    path : PREFIX or PREFIX-symbol.json, as ``export`` and ``save_checkpoint`` write, or a folder
        that holds one model
    params : parameter file; None: the ``PREFIX-NNNN.params`` of the highest number
    shapes : shapes of inputs by name, where the files do not say them; -1 stands for any extent
    dtypes : types of inputs by name, where they are not those that the graph asks for
    version : a number that requests may name
    precision : as in ``hybridize``: "default", "exact" or "bf16"
    batch : whether requests that wait while the model computes are joined into one call: "off";
        "auto", where the model's estimates say that it is worth it; or the rows of the largest
        batch. The last bits of an answer may then depend on how many rows were joined
    """

    path: str | os.PathLike[str]
    params: str | os.PathLike[str] | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    version: str = "1"
    precision: str = "default"
    batch: str | int = "off"


class Server:
    """A server for models, over HTTP and gRPC.

    ``with Server(models) as server:`` serves while the block runs, from threads of its own;
    ``Server(models).run()`` serves until the process is told to end.

    Parameters
    ----------
    models : a path, a ``Model``, or several of them: by name, or as a sequence, which take the
        names of their files
    host : name or address to listen at; any but loopback can be reached by others, without a check
        who they are
    port : port of HTTP; 0 takes a free one; None: no port of HTTP
    grpc_port : port of gRPC; None: no port of gRPC; "next": the one after ``port``, which is a free
        one where that is 0
    unix, grpc_unix : paths of Unix sockets of HTTP and gRPC
    tls : files of certificate and private key, in PEM; they are read again when they change
    tokens : file of bearer tokens, one a line; requests must have one of them; None: no check
    inherited : listen at the sockets that systemd handed to the process, and at no others; those
        named ``grpc`` speak gRPC
    grace : seconds that requests which have begun get at the end
    deadline : seconds for a request that says no ``timeout``; None: no bound
    max_body : bytes of the largest request body
    queue_requests : requests that may wait or compute at a time; more are refused with status 429
    queue_bytes : bytes of request bodies that may be held at a time
    header_timeout : seconds for the head of a request
    body_timeout : seconds for its body, beside one for each 256 KiB of it
    idle_timeout : seconds that a connection may stay without a request
    connections : connections that may be open at a time
    io_threads : threads that read and write

    Raises
    ------
    MXNetError : when it starts: the address is in use, or a model cannot be loaded; the message
        names it
    """

    def __init__(
        self,
        models: Any,
        host: str = "127.0.0.1",
        port: int | None = 8000,
        *,
        grpc_port: int | str | None = "next",
        unix: str | os.PathLike[str] | None = None,
        grpc_unix: str | os.PathLike[str] | None = None,
        tls: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
        tokens: str | os.PathLike[str] | None = None,
        inherited: bool = False,
        grace: float = GRACE,
        deadline: float | None = None,
        max_body: int = 64 << 20,
        queue_requests: int = 1024,
        queue_bytes: int = 512 << 20,
        header_timeout: float = 10,
        body_timeout: float = 30,
        idle_timeout: float = 75,
        connections: int = 16384,
        io_threads: int = 2,
    ) -> None:
        self._models = [_given(name, model) for name, model in _named(models)]
        self._grace = grace
        if grpc_port == "next":
            if port == _LAST_PORT:
                raise MXNetValueError(
                    f"there is no port after {port} for gRPC: give one by grpc_port (--grpc-port), or None (off)"
                )
            grpc_port = port + 1 if port else port
        self._tls = None if tls is None else (os.fspath(tls[0]), os.fspath(tls[1]))
        self._settings = {
            "host": host,
            "port": port,
            "grpc_port": grpc_port,
            "unix": unix,
            "grpc_unix": grpc_unix,
            "tls": self._tls,
            "tokens": tokens,
            "inherited": inherited,
            "deadline": deadline,
            "max_body": max_body,
            "queue_requests": queue_requests,
            "queue_bytes": queue_bytes,
            "header_timeout": header_timeout,
            "body_timeout": body_timeout,
            "idle_timeout": idle_timeout,
            "connections": connections,
            "io_threads": io_threads,
        }
        self._server: Any = None

    def start(self) -> Server:
        """Loads the models, listens and returns; requests are answered from now on."""
        if self._server is None:
            server = getattr(_mxrt, "HttpServer", None)
            if server is None:
                raise MXNetNotImplementedError("this build of mxrt has no server: it was made without its feature")
            self._server = server(self._models, self._settings)
        return self

    def stop(self, grace: float | None = None) -> bool:
        """Refuses new requests, waits up to ``grace`` seconds for those that have begun, and ends.

        Returns whether all of them were answered.
        """
        if self._server is None:
            return True
        server, self._server = self._server, None
        return bool(server.stop(self._grace if grace is None else grace))

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it speaks HTTP, such as ``http://127.0.0.1:8000``."""
        url = self._places().url
        if url is None:
            raise MXNetError("the server has no port of HTTP: port says which one it is to have")
        return url

    @property
    def grpc(self) -> str:
        """Where it speaks gRPC, such as ``127.0.0.1:8001``, as clients of gRPC take it."""
        place = self._places().grpc
        if place is None:
            raise MXNetError("the server does not speak gRPC: grpc_port says where it is to")
        return place

    def _places(self) -> _serve_places.Places:
        return _serve_places.Places(self._running().places(), self._tls)

    @property
    def models(self) -> list[dict[str, Any]]:
        """The protocol's metadata of every version of every model."""
        return list(json.loads(self._running().models()))

    def _running(self) -> Any:
        if self._server is None:
            raise MXNetError("the server does not run: call start(), or use it in a with statement")
        return self._server

    def run(self) -> int:
        """Serves until SIGTERM or SIGINT, in the main thread. Returns the exit status of the
        process.

        After the first signal new requests are refused, and those that have begun get ``grace``
        seconds. A second signal ends the process at once.
        """
        signals = (signal.SIGTERM, signal.SIGINT)
        woken, wakes = socket.socketpair()
        wakes.setblocking(False)
        # The system may run the handler in any thread, and Python runs it in this one later; the
        # number is written at once.
        fd = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        # After that: a handler without a place for the number would lose the signal.
        before = {number: signal.signal(number, lambda *_: None) for number in signals}
        try:
            self.start()
            _next_signal(woken, signals)
            self._running().drain()
            return self._drain(woken, signals)
        finally:
            signal.set_wakeup_fd(fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            woken.close()
            wakes.close()

    def _drain(self, woken: socket.socket, signals: Sequence[int]) -> int:
        left = self._grace
        while left > 0 and not self._running().wait_drained(min(left, 0.05)):
            left -= 0.05
            if (number := _signal_within(woken, signals, 0)) is not None:
                sys.stdout.flush()
                os._exit(128 + number)
        if self.stop(0):
            return 0
        print(f"mxrt serve: requests were left after {self._grace:g} s (--grace)", file=sys.stderr)
        return 1


def _next_signal(woken: socket.socket, signals: Sequence[int]) -> int:
    while (number := _signal_within(woken, signals, None)) is None:
        pass
    return number


def _signal_within(woken: socket.socket, signals: Sequence[int], seconds: float | None) -> int | None:
    """The next of these signals; None when there was none in time, or only others."""
    if not select.select([woken], [], [], seconds)[0]:
        return None
    return next((number for number in woken.recv(1) if number in signals), None)


def _named(models: Any) -> list[tuple[str, Model]]:
    """Models with their names."""
    if isinstance(models, (str, os.PathLike, Model)):
        models = [models]
    if isinstance(models, Mapping):
        pairs = [(str(name), _model(model)) for name, model in models.items()]
    else:
        pairs = [("", _model(model)) for model in models]
    if not pairs:
        raise MXNetValueError("there is no model to be served: name one")
    return pairs


def _model(model: Any) -> Model:
    return model if isinstance(model, Model) else Model(model)


def _files(model: Model) -> tuple[Path, Path | None]:
    """Symbol file and parameter file of a model."""
    path = Path(model.path)
    if path.is_dir():
        found = sorted(path.glob("*-symbol.json"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found[:8]) or "none"
            raise UsageError(f"the folder '{path}' must hold one *-symbol.json; found: {names}")
        path = found[0]
    if path.suffix in (".onnx", ".zip", ".mar", ".gz", ".tar", ".tgz"):
        raise UsageError(f"'{path}' is no model that mxrt serve reads: expected a symbol file, its prefix or a folder")
    return find(str(path), None if model.params is None else os.fspath(model.params))


def _given(name: str, model: Model) -> tuple[Any, ...]:
    """A model as the server takes it."""
    try:
        symbol, params = _files(model)
    except UsageError as error:
        raise MXNetValueError(str(error)) from None
    name = name or symbol.name.removesuffix(".json").removesuffix("-symbol")
    shapes = [(key, [int(extent) for extent in shape]) for key, shape in model.shapes.items()]
    flags = [] if model.precision == "default" else [("precision", model.precision)]
    return name, model.version, symbol, params, shapes, list(model.dtypes.items()), flags, _rows(model.batch)


def _rows(batch: str | int) -> int | None:
    """Rows of a batch as the server takes them: 0 for none, None where the model decides."""
    if batch in ("off", "auto"):
        return 0 if batch == "off" else None
    if isinstance(batch, int) and not isinstance(batch, bool) and batch >= 2:
        return batch
    raise MXNetValueError(f'batch is {batch!r}; expected "off", "auto" or the rows of the largest batch, 2 or more')


# ---- the command -------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument(
        "models",
        metavar="[NAME=]MODEL",
        nargs="+",
        help="PREFIX, PREFIX-symbol.json, or a folder with one model; NAME is that of the file if none is said",
    )
    parser.add_argument(
        "--params",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help="parameter file (otherwise the PREFIX-NNNN.params of the highest number)",
    )
    parser.add_argument(
        "--shape",
        metavar="[NAME:][INPUT=]N,C,H,W",
        action="append",
        default=[],
        help="shape of an input, where the files do not say it, such as data=-1,3,224,224; -1 is any extent",
    )
    parser.add_argument(
        "--dtype",
        metavar="[NAME:]INPUT=TYPE",
        action="append",
        default=[],
        help="type of an input, such as uint8, where it is not the one that the graph asks for",
    )
    parser.add_argument(
        "--batch",
        metavar="[NAME=]off|auto|ROWS",
        action="append",
        default=[],
        help="whether requests that wait are joined into one call, of at most so many rows (default off)",
    )
    _serve_places.add_arguments(parser)
    parser.add_argument(
        "--deadline", type=float, metavar="SECONDS", help="time for a request that says no timeout (default: none)"
    )
    parser.add_argument(
        "--queue", type=int, default=1024, metavar="N", help="requests that may wait or compute (default 1024)"
    )
    parser.add_argument(
        "--max-body", type=float, default=64, metavar="MB", help="largest request body (default 64 MiB)"
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=GRACE,
        metavar="SECONDS",
        help="time for requests that have begun when the process is told to end (default 25)",
    )
    parser.add_argument("--check", action="store_true", help="load the models, say what they are, and end")


def main(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        models = _from_arguments(args)
        for name in ("grace", "max_body"):
            if not (math.isfinite(getattr(args, name)) and getattr(args, name) >= 0):
                raise UsageError(f"--{name.replace('_', '-')} is {getattr(args, name)}; expected 0 or more")
        settings = _serve_places.settings_of(args)
        if args.check:
            settings.update(port=0, grpc_port=None, unix=None, grpc_unix=None, inherited=False)
        if args.queue < 1:
            raise UsageError(f"--queue is {args.queue}; expected 1 or more")
        server = Server(
            models,
            **settings,
            grace=args.grace,
            deadline=args.deadline,
            max_body=int(args.max_body * (1 << 20)),
            queue_requests=args.queue,
        ).start()
    except (UsageError, OSError, MXNetError) as error:
        print(f"mxrt serve: {error}", file=sys.stderr)
        return 2
    words = _serve_places.warning(settings)
    if words is not None and not args.check:
        print(f"mxrt serve: {words}", file=sys.stderr)
    places = server._places()
    for model in server.models:
        print(_line(model, places))
    if places.grpc is not None:
        print(f"gRPC at {places.grpc}")
    sys.stdout.flush()
    if args.check:
        server.stop()
        return 0
    return server.run()


def _from_arguments(args: argparse.Namespace) -> dict[str, Model]:
    """Models by name, from the arguments of the command."""
    models: dict[str, dict[str, Any]] = {}
    for text in args.models:
        name, equals, path = text.partition("=")
        if not equals or "/" in name:
            name, path = "", text
        name = name or _own_name(path)
        if name in models:
            raise UsageError(f"two models have the name '{name}': write NAME=MODEL")
        models[name] = {"path": path, "shapes": {}, "dtypes": {}}
    for text in args.params:
        name, equals, file = text.partition("=")
        of = _model_of(models, name if equals else "", "--params", text)
        of["params"] = file if equals else text
    for text in args.shape:
        key, equals, shape = text.rpartition("=")
        name, _, given = key.rpartition(":")
        if not equals:
            name, _, shape = text.rpartition(":")
        _model_of(models, name, "--shape", text)["shapes"][given] = _extents(text, shape)
    for text in args.dtype:
        key, equals, dtype = text.rpartition("=")
        name, _, given = key.rpartition(":")
        if not equals:
            raise UsageError(f"--dtype {text}: expected INPUT=TYPE, such as data=uint8")
        _model_of(models, name, "--dtype", text)["dtypes"][given] = dtype
    for text in args.batch:
        name, equals, batch = text.rpartition("=")
        choice: str | int = int(batch) if batch.isdecimal() else batch
        _model_of(models, name if equals else "", "--batch", text)["batch"] = choice
    return {name: _with_lone_input(Model(**model)) for name, model in models.items()}


def _own_name(path: str) -> str:
    try:
        symbol, _ = _files(Model(path))
    except UsageError as error:
        raise UsageError(str(error)) from None
    return symbol.name.removesuffix(".json").removesuffix("-symbol")


def _model_of(models: dict[str, dict[str, Any]], name: str, option: str, text: str) -> dict[str, Any]:
    if name:
        if name not in models:
            raise UsageError(f"{option} {text}: there is no model '{name}'; there are {', '.join(models)}")
        return models[name]
    if len(models) != 1:
        raise UsageError(f"{option} {text}: say which of {', '.join(models)} is meant")
    return next(iter(models.values()))


def _extents(text: str, shape: str) -> list[int]:
    try:
        extents = [int(part) for part in shape.split(",")]
    except ValueError:
        extents = []
    if not extents or any(extent < 1 and extent != -1 for extent in extents):
        raise UsageError(f"--shape {text}: expected whole numbers with commas, such as -1,3,224,224; -1 is any extent")
    return extents


def _with_lone_input(model: Model) -> Model:
    """A shape without a name belongs to the one input that the model has."""
    if "" not in model.shapes:
        return model
    from .gluon.parameter_dict import named_arrays, strip_kind
    from .symbol import load

    symbol, params = _files(model)
    held = {strip_kind(name) for name in named_arrays(str(params))} if params else set()
    names = [name for name in load(str(symbol)).list_inputs() if name not in held and not name.endswith("label")]
    if len(names) != 1:
        raise UsageError(f"--shape: say which of the inputs {', '.join(names)} is meant: INPUT=N,C,H,W")
    shapes = {name or names[0]: shape for name, shape in model.shapes.items()}
    return Model(model.path, model.params, shapes, model.dtypes, model.version, model.precision, model.batch)


def _line(model: dict[str, Any], places: _serve_places.Places) -> str:
    """What is said of a model when the server starts."""
    inputs = ", ".join(f"{tensor['name']} {tensor['datatype']}{tensor['shape']}" for tensor in model["inputs"])
    asking = "" if places.curl is None else f"; try: {_curl(model, *places.curl)}"
    return f"{model['name']}: {inputs} at {places.said}{asking}"


def _curl(model: dict[str, Any], options: str, url: str) -> str:
    """A command that asks the model with zeros; for its metadata where shapes are not known."""
    path = f"{url}/v2/models/{quote(model['name'], safe='')}"
    inputs, size = [], 0
    for tensor in model["inputs"]:
        first, rest = tensor["shape"][:1], tensor["shape"][1:]
        if (first == [-1] and not rest) or -1 in rest:
            return f"curl -s{options} '{path}'"
        shape = [1 if extent == -1 else extent for extent in first] + rest
        bytes_ = math.prod(shape) * _SIZES[tensor["datatype"]]
        size += bytes_
        parameters = {"binary_data_size": bytes_}
        inputs.append(
            {"name": tensor["name"], "shape": shape, "datatype": tensor["datatype"], "parameters": parameters}
        )
    request: dict[str, Any] = {"inputs": inputs}
    # JSON has no numbers of these types.
    binary = any(tensor["datatype"] in ("FP16", "BF16") for tensor in model["outputs"])
    if binary:
        request["parameters"] = {"binary_data_output": True}
    text = json.dumps(request, separators=(",", ":"))
    header = f"Inference-Header-Content-Length: {len(text.encode())}"
    to = " -o answer.bin" if binary else ""
    asking = f"curl -s{to}{options} -H '{header}' --data-binary @- '{path}/infer'"
    return f"(printf %s '{text}'; head -c {size} /dev/zero) | {asking}"
