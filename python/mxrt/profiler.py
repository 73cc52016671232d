"""A record of every operator, with its place and time: ``mx.profiler``."""

from __future__ import annotations

import json
import os
import threading
import warnings  # noqa: F401 (a name of MXNet's module)
from typing import Any

from . import _mxrt
from ._system.locks import fork_safe_lock
from .base import MXNetValueError, warn

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "set_config",
    "set_state",
]

_OPTIONS = {
    "filename": "profile.json",
    "profile_all": False,
    "profile_symbolic": False,
    "profile_imperative": False,
    "profile_memory": False,
    "profile_api": False,
    "continuous_dump": False,
    "contiguous_dump": False,
    "dump_period": 1.0,
    "aggregate_stats": False,
    "profile_process": "worker",
}
_config: dict[str, Any] = dict(_OPTIONS)
_lock = fork_safe_lock()
_own_events: list[dict[str, Any]] = []
# By group and name: how many spans there were, and their milliseconds in all, least and most.
_own_totals: dict[str, dict[str, tuple[int, float, float, float]]] = {}
_threads: dict[int, list[str]] = {}  # a number is used again when its thread has ended
_running = False
_COLUMNS = {"total": 2, "count": 1, "min": 3, "max": 4, "avg": 5}


def set_config(**kwargs: Any) -> None:
    """Sets options. ``filename`` is where :func:`dump` writes; the ``profile_*`` options of MXNet
    are accepted: every operator the engine runs is recorded.
    """
    unknown = sorted(set(kwargs) - set(_OPTIONS))
    if unknown:
        raise MXNetValueError(f"profiler.set_config: unknown option {unknown[0]!r}; known: {', '.join(_OPTIONS)}")
    _config.update({name: value for name, value in kwargs.items() if value is not None})


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """``"run"`` starts recording, ``"stop"`` ends it. What was submitted to a device until then is
    recorded when it is complete there.
    """
    global _running
    if state not in ("run", "stop"):
        raise MXNetValueError(f"profiler.set_state: expected 'run' or 'stop', not {state!r}")
    with _lock:
        _running = state == "run"
        _mxrt.profiler_switch(_running)


def pause(profile_process: str = "worker") -> None:
    """Stops recording for a while; see :func:`resume`."""
    with _lock:
        _mxrt.profiler_switch(False)


def resume(profile_process: str = "worker") -> None:
    """Continues recording if the state is ``"run"``."""
    with _lock:
        _mxrt.profiler_switch(_running)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Writes what was recorded to the file of :func:`set_config`, for ``chrome://tracing`` or
    https://ui.perfetto.dev. Every device is a process of its own there, with a lane for each of its
    streams.

    ``finished``: recording ends, what was submitted to devices is waited for, and what was written
    is forgotten. With ``finished=False`` nothing is waited for: the file has what is complete now.
    What was called and not even submitted yet is in neither; ``mx.nd.waitall()`` comes before that.
    """
    if finished:
        set_state("stop")
        _mxrt.profiler_finish()
    events = _mxrt.profiler_events(finished)
    with _lock:
        own = [json.dumps(event) for event in [*_names(), *_own_events]]
        if finished:
            _own_events.clear()
            _threads.clear()
    body = ",\n".join(events + own)
    with open(_config["filename"], "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n' + body + "\n]}\n")


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Times by operator, as a table or as JSON; under ``device`` those of what ran on devices and
    is complete now, measured there. Tasks, frames and events of the program stand under the names
    of their domains.

    ``sort_by``: ``total``, ``count``, ``min``, ``max`` or ``avg``. ``reset``: what was recorded is
    forgotten.
    """
    if format not in ("table", "json"):
        raise MXNetValueError(f"profiler.dumps: format is {format!r}; expected 'table' or 'json'")
    if sort_by not in _COLUMNS:
        raise MXNetValueError(f"profiler.dumps: sort_by is {sort_by!r}; expected one of {', '.join(_COLUMNS)}")
    tables: dict[str, _Rows] = {}
    operators, devices = _mxrt.profiler_totals(reset)
    with _lock:
        own = {domain: [(name, *row) for name, row in spans.items()] for domain, spans in _own_totals.items()}
        if reset:
            _own_totals.clear()
    # Operators that operators of the program call stand with these.
    inside = [row for row in operators if "::" in row[0]]
    if inside:
        own["Custom Operator"] = own.get("Custom Operator", []) + inside
        operators = [row for row in operators if "::" not in row[0]]
    for title, found in [("operator", operators), ("device", devices), *own.items()]:
        rows = [(name, count, total, low, high, total / count) for name, count, total, low, high in found]
        rows.sort(key=lambda row: row[_COLUMNS[sort_by]], reverse=not ascending)
        if rows or title == "operator":
            tables[title] = rows
    return _json(tables) if format == "json" else _tables(tables)


_Rows = list[tuple[str, int, float, float, float, float]]


def _json(tables: dict[str, _Rows]) -> str:
    titles = ("Count", "Total", "Min", "Max", "Avg")
    times = {title: {row[0]: dict(zip(titles, row[1:], strict=True)) for row in rows} for title, rows in tables.items()}
    return json.dumps({"Time": times, "Memory": {}, "Unit": {"Time": "ms", "Memory": "KB"}})


def _tables(tables: dict[str, _Rows]) -> str:
    titles = ("Name", "Total Count", "Time (ms)", "Min Time (ms)", "Max Time (ms)", "Avg Time (ms)")
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for title, rows in tables.items():
        table = [titles, tuple("-" * len(name) for name in titles)]
        table += [(row[0], str(row[1]), *(f"{value:.4f}" for value in row[2:])) for row in rows]
        lines += [title, "=" * 17]
        lines += [f"{name:<25}" + " ".join(f"{text:>16}" for text in rest) for name, *rest in table]
    return "\n".join(lines) + "\n"


# ---- what programs add themselves ----------------------------------------------------------------


def _record(event: dict[str, Any]) -> None:
    number = _mxrt.profiler_thread()
    with _lock:
        names = _threads.setdefault(number, [])
        if (name := threading.current_thread().name) not in names:
            names.append(name)
        _own_events.append({"pid": 0, "tid": number, **event})


def _add_up(domain: str, name: str, milliseconds: float) -> None:
    """Adds a span to the totals that ``dumps`` shows."""
    with _lock:
        spans = _own_totals.setdefault(domain, {})
        count, total, low, high = spans.get(name, (0, 0.0, milliseconds, milliseconds))
        spans[name] = (count + 1, total + milliseconds, min(low, milliseconds), max(high, milliseconds))


def _names() -> list[dict[str, Any]]:
    """The Python names of the threads that recorded something."""
    return [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": number, "args": {"name": ", ".join(names[-4:])}}
        for number, names in _threads.items()
    ]


class Domain:
    """A group of tasks, counters and markers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A task of this group."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A frame of this group."""
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """A counter of this group."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A marker of this group."""
        return Marker(self, name)


class _Span:
    """A time from ``start`` to ``stop``, also as a scope."""

    def __init__(self, category: str, name: str) -> None:
        self.name = name
        self._category = category
        self._began: float | None = None

    def start(self) -> None:
        """Begins now."""
        _mxrt.profiler_thread()  # from now on the thread has a number of its own
        self._began = _mxrt.profiler_now()

    def stop(self) -> None:
        """Ends now; without a beginning nothing happens."""
        began, self._began = self._began, None
        if began is None:
            return
        times = {"ts": began, "dur": _mxrt.profiler_now() - began}
        if _running:
            _record({"name": self.name, "cat": self._category, "ph": "X", **times})
            _add_up(self._category, self.name, times["dur"] / 1000)

    def __enter__(self) -> _Span:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return self.name


class Task(_Span):
    """A piece of work of a program."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(str(domain), name)


class Frame(_Span):
    """One of many passes of a program."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(str(domain), name)


class Event(_Span):
    """Something that belongs to no group."""

    def __init__(self, name: str) -> None:
        super().__init__("event", name)


class Counter:
    """A number over time."""

    def __init__(self, domain: Domain, name: str, value: int | None = None) -> None:
        self.name = name
        self._domain = domain
        self._value = 0
        if value is not None:
            self.set_value(value)

    def set_value(self, value: int) -> None:
        """The number is this now."""
        self._value = value
        if _running:
            moment = {"ph": "C", "ts": _mxrt.profiler_now(), "args": {"value": value}}
            _record({"name": self.name, "cat": str(self._domain), **moment})

    def increment(self, delta: int = 1) -> None:
        """Adds to the number."""
        with _lock:
            self.set_value(self._value + delta)

    def decrement(self, delta: int = 1) -> None:
        """Takes from the number."""
        self.increment(-delta)

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """A moment."""

    def __init__(self, domain: Domain, name: str) -> None:
        self.name = name
        self.domain = domain
        self._domain = domain

    def mark(self, scope: str = "process") -> None:
        """Marks the present time."""
        scopes = {"global": "g", "process": "p", "thread": "t", "task": "t"}
        if scope not in scopes:
            raise MXNetValueError(f"Marker.mark: scope is {scope!r}; expected one of {', '.join(scopes)}")
        if _running:
            moment = {"ph": "i", "ts": _mxrt.profiler_now(), "s": scopes[scope]}
            _record({"name": self.name, "cat": str(self._domain), **moment})


# ---- old names -----------------------------------------------------------------------------------


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Old name of :func:`set_config`."""
    warn("profiler.profiler_set_config() is deprecated; use profiler.set_config()")
    set_config(filename=filename)


def profiler_set_state(state: str = "stop") -> None:
    """Old name of :func:`set_state`."""
    warn("profiler.profiler_set_state() is deprecated; use profiler.set_state()")
    set_state(state)


def dump_profile() -> None:
    """Old name of :func:`dump`."""
    warn("profiler.dump_profile() is deprecated; use profiler.dump()")
    dump(True)


if os.environ.get("MXNET_PROFILER_AUTOSTART", "0") not in ("", "0"):
    set_state("run")
