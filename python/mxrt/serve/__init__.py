"""Serving models over HTTP and gRPC from a program: ``mxrt.serve.Server``, and ``Batcher``.

The server speaks the Open Inference Protocol, version 2. Its threads run code in Rust; Python runs
for the requests of models with hooks alone.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from .. import _mxrt
from .._system.locks import fork_safe_lock
from ..base import MXNetError, MXNetNotImplementedError, MXNetValueError
from ._places import Places

__all__ = ["Batcher", "Model", "Server"]


class Model:
    """A model to be served.

    Parameters
    ----------
    path : PREFIX, PREFIX-NNNN or PREFIX-symbol.json, as ``export`` and ``save_checkpoint`` write
        them, a folder that holds one model, or an archive with one
    settings : settings of the model, by the keys that docs/commands.md lists, such as ``params``,
        ``shapes={"data": [-1, 3, 224, 224]}``, ``dtypes={"data": "uint8"}``, ``version``,
        ``precision``, ``batch`` and ``deadline``
    """

    def __init__(self, path: str | os.PathLike[str], **settings: Any) -> None:
        self.path = path
        self.settings = settings

    def __repr__(self) -> str:
        said = "".join(f", {key}={value!r}" for key, value in self.settings.items())
        return f"Model({os.fspath(self.path)!r}{said})"


class Server:
    """A server for models, over HTTP and gRPC.

    ``with Server(models) as server:`` serves while the block runs, from threads of its own;
    ``Server(models).run()`` serves until the process is told to end.

    Parameters
    ----------
    models : a path, a ``Model``, a mapping of names to such, or a sequence of them, whose names
        are those of their files
    config : file of settings and models, in TOML
    settings : settings of the server, or of all its models, by the keys that docs/commands.md
        lists, such as ``host``, ``port`` (0 takes a free one, None opens none), ``tokens``,
        ``max_body`` in bytes, and times in seconds

    Raises
    ------
    MXNetValueError : a setting does not exist (the message names the nearest one) or has a wrong
        value
    MXNetError : at the start: the address is in use, or a model cannot be loaded; the message
        names it
    """

    def __init__(self, models: Any = (), *, config: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        made = configuration()
        if config is not None:
            made.file(config)
        for key, value in settings.items():
            made.set(key, value, False)
        for name, model in _named(models):
            _add(made, name, model)
        self._config = made
        self._server: Any = None
        self._exporter: Any = None
        self._read: Callable[[], Any] | None = None
        self._wakes: tuple[socket.socket, ...] | None = None

    @classmethod
    def _of(cls, config: Any, read: Callable[[], Any] | None = None) -> Server:
        """Makes a server of settings that were read already. ``read`` reads them for a reload."""
        made = cls.__new__(cls)
        made._config, made._server, made._exporter, made._read, made._wakes = config, None, None, read, None
        return made

    def _hear_reloads(self) -> None:
        """Keeps each SIGHUP from now on until :meth:`run` handles it.

        Call it in the main thread, before the server listens.
        """
        self._wakes = _, wakes = socket.socketpair()
        wakes.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, lambda *_: None)

    def _hear_ends(self) -> None:
        """Keeps each SIGTERM and SIGINT from now on until :meth:`run` handles it.

        Call it after :meth:`_hear_reloads`, before anybody learns that the server listens.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def start(self) -> Server:
        """Loads the models, listens and returns; requests are answered from now on."""
        if self._server is None:
            # For run(): later the connections may have taken the last descriptors.
            if self._wakes is None:
                self._wakes = socket.socketpair()
            try:
                self._begin()
            except BaseException:
                self._close_wakes()
                raise
        return self

    def _begin(self) -> None:
        server, url = _mxrt.HttpServer(self._config), self._config.traces()
        if url is not None:
            from ._traces import Exporter

            self._exporter = Exporter(server, url)
        self._server = server

    def _close_wakes(self) -> None:
        for wake in self._wakes or ():
            wake.close()
        self._wakes = None

    def stop(self, grace: float | None = None) -> bool:
        """Refuses new requests, waits up to ``grace`` seconds for those that have begun, and ends.

        Returns whether all of them were answered.
        """
        if self._server is None:
            return True
        server, self._server = self._server, None
        self._close_wakes()
        exporter, self._exporter = self._exporter, None
        answered = bool(server.stop(self._config.grace() if grace is None else grace))
        if exporter is not None:
            exporter.stop()
        return answered

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL of HTTP, such as ``http://127.0.0.1:8000``.

        Raises MXNetError if the server has no port of HTTP.
        """
        url = self._places().url
        if url is None:
            raise MXNetError("the server has no port of HTTP: port says which one it is to have")
        return url

    @property
    def grpc(self) -> str:
        """The address of gRPC in the form that its clients take, such as ``127.0.0.1:8001``.

        Raises MXNetError if the server does not speak gRPC.
        """
        place = self._places().grpc
        if place is None:
            raise MXNetError("the server does not speak gRPC: grpc_port says where it is to")
        return place

    @property
    def admin(self) -> str:
        """The URL of the port for operators, such as ``http://127.0.0.1:8002``.

        Raises MXNetError if the server has no such port.
        """
        place = self._places().admin
        if place is None:
            raise MXNetError("the server has no such port: admin_port says which one it is to have")
        return place

    def _places(self) -> Places:
        config = self._config
        return Places(self._running().places(), config.certificate(), config.tokens())

    def _log(self, level: str, words: str, model: str | None = None) -> None:
        """Writes a line to the log, in the form of the server's own lines."""
        log(self._config.logs_json(), level, words, model)

    @property
    def models(self) -> list[dict[str, Any]]:
        """Metadata of every version of every model, in the form of the Open Inference Protocol."""
        return list(json.loads(self._running().models()))

    @property
    def index(self) -> list[dict[str, str]]:
        """Every version of every model: ``name``, ``version``, ``state`` and ``reason``."""
        keys = ("name", "version", "state", "reason")
        return [dict(zip(keys, row, strict=True)) for row in self._running().index()]

    def load(self, name: str) -> None:
        """Loads a model: the versions that the repository's folder has now, or its files again.

        The present version continues to serve until the new one has been checked. The new one
        then takes over in one step.
        """
        self._running().load(name)

    def unload(self, name: str) -> None:
        """Takes a model out of service; requests that have begun end on it."""
        self._running().unload(name)

    def reload(self) -> None:
        """Loads again the models that have changed in the repository's folder, and every model that
        was given by its path, as SIGHUP does.

        A version that does not load leaves the present one in service. A server that the command
        started also reads its file of settings again, and uses those of models from then on.
        """
        try:
            self._running().reload(self._read and self._read())
        except (OSError, MXNetError) as error:
            self._log("error", f"the settings are as before: {error}")
            self._running().reload()

    def _running(self) -> Any:
        if self._server is None:
            raise MXNetError("the server does not run: call start(), or use it in a with statement")
        return self._server

    def run(self) -> int:
        """Serves until SIGTERM or SIGINT, in the main thread. Returns the exit status of the
        process.

        After the first signal new requests are refused, and those that have begun get ``grace``
        seconds. A second signal ends the process at once. SIGHUP loads again what has changed.
        """
        ends = (signal.SIGTERM, signal.SIGINT)
        signals = (*ends, signal.SIGHUP)
        woken, wakes = self._wakes or socket.socketpair()
        self._wakes = ()  # they are closed here
        wakes.setblocking(False)
        # The system may run the handler in any thread, and Python runs it in this one later; the
        # number is written at once.
        fd = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        # After that: a handler without a place for the number would lose the signal.
        before = {number: signal.signal(number, lambda *_: None) for number in signals}
        try:
            self.start()
            while _next_signal(woken, signals) == signal.SIGHUP:
                self.reload()
            self._running().drain()
            return self._drain(woken, ends)
        finally:
            signal.set_wakeup_fd(-1 if fd == wakes.fileno() else fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            woken.close()
            wakes.close()

    def _drain(self, woken: socket.socket, signals: Sequence[int]) -> int:
        grace = left = self._config.grace()
        while left > 0 and not self._running().wait_drained(min(left, 0.05)):
            left -= 0.05
            if (number := _signal_within(woken, signals, 0)) is not None:
                sys.stdout.flush()
                os._exit(128 + number)
        if self.stop(0):
            return 0
        self._log("warning", f"requests were left after {grace:g} s (--grace)")
        return 1


class Batcher:
    """Joins calls of a network from any number of threads into one call of several rows.

    A lone call runs at once. Calls that arrive while it computes wait and form the next batch.
    Each caller gets the results of its own rows. If a batch fails, each of its calls is made again
    alone, once. The last bits of a row may depend on how many rows are joined.

    Parameters
    ----------
    net : a ``SymbolBlock``, or a hybridised block, whose rows do not depend on each other
    rows : number of rows of the largest batch, 2 or more
    sizes : numbers of rows that batches are padded to, so that plans stay few; empty: powers of
        two
    max_delay : seconds that a lone call waits for others

    Raises
    ------
    MXNetValueError : at the first call: rows depend on each other
    """

    def __init__(self, net: Any, rows: int = 16, sizes: Sequence[int] = (), max_delay: float = 0.0) -> None:
        self._net = net
        self._settings = (rows, list(sizes), max_delay)
        self._lock = fork_safe_lock()
        # What joins, and the generation of parameters that it was made of.
        self._made: tuple[int, Any] = (-1, None)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Returns the network's result for these arrays: one array, or a list of the outputs.
        ``options`` are those of a call, such as ``priority`` and ``deadline``.
        """
        from ..gluon._publishing import generation

        number, made = self._made
        if number != generation():
            made = self._make(args)
        return made(*args, **options)

    def _make(self, args: tuple[Any, ...]) -> Any:
        from ..gluon._publishing import generation

        with self._lock:
            known, made = self._made
            number = generation()
            if known == number:
                # Another thread was first: calls of two batchers would not be joined.
                return made
            graph, arrays = self._net._graph_for_plan(args)
            if arrays[0].context.device_type != "cpu":
                raise MXNetValueError(f"calls are joined on the CPU; the arrays are on {arrays[0].context}")
            if graph._picks is not None:
                raise MXNetValueError(
                    "the network takes arrays that its graph does not use; pass them by a block without"
                )
            made = _mxrt.Batcher(graph._bind(arrays[0].context), tuple(arrays), *self._settings)
            self._made = (number, made)
            return made

    @property
    def counts(self) -> tuple[int, int]:
        """The number of calls that joined rows of several callers, and the number of their rows."""
        made = self._made[1]
        return (0, 0) if made is None else made.counts()


def _next_signal(woken: socket.socket, signals: Sequence[int]) -> int:
    while (number := _signal_within(woken, signals, None)) is None:
        pass
    return number


def _signal_within(woken: socket.socket, signals: Sequence[int], seconds: float | None) -> int | None:
    """Returns the next of these signals, or None if none arrived in time or it was another."""
    if not select.select([woken], [], [], seconds)[0]:
        return None
    return next((number for number in woken.recv(1) if number in signals), None)


def log(as_json: bool, level: str, words: str, model: str | None = None) -> None:
    """Writes a line of the log: an object of JSON, or text."""
    sys.stderr.write(_mxrt.serve_line(as_json, level, words, model))
    sys.stderr.flush()


def configuration() -> Any:
    """Makes settings that all have their defaults.

    Raises MXNetNotImplementedError if this build has no server.
    """
    made = getattr(_mxrt, "ServeConfig", None)
    if made is None:
        raise MXNetNotImplementedError("this build of mxrt has no server: it was made without its feature")
    return made()


def _named(models: Any) -> list[tuple[str, Model]]:
    """Pairs each model with its name: a key of the mapping, or the name of its file."""
    if isinstance(models, (str, os.PathLike, Model)):
        models = [models]
    if isinstance(models, Mapping):
        return [(str(name), _model(model)) for name, model in models.items()]
    made = [_model(model) for model in models]
    return [(_mxrt.own_name_of_model(model.path), model) for model in made]


def _model(model: Any) -> Model:
    return model if isinstance(model, Model) else Model(model)


def _add(config: Any, name: str, model: Model) -> None:
    if name in config.models():
        raise MXNetValueError(f"two models have the name '{name}': give one another name")
    config.add_model(name)
    config.set_model(name, "path", model.path, False)
    for key, value in model.settings.items():
        config.set_model(name, key, value, False)
