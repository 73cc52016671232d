"""Imports of mxrt's modules, and forks.

Python keeps a lock for each module that is being imported. In a child whose parent forked meanwhile
the locks of other threads stay taken, and their modules half done. So a fork waits until no other
thread executes a module of mxrt, the package itself and the stand-in for MXNet among them. What
other threads had only begun, the child forgets. This concerns Python's library too, parts of which
functions of mxrt import at their first use.

Threads that use parts of mxrt for the first time take turns: of two that begin with different
modules of one package, each would hold what the other waits for.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import logging  # noqa: F401  it takes its lock at forks: after this module has waited, if it comes first
import os
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .._system.locks import fork_safe_lock
from .._system.native import allocate_lock, get_ident
from .module_names import attach

__all__ = ["load"]

# A fork goes ahead then, as it does where an operator does not end.
_PATIENCE_S = 30.0
# Python executes these, not the loader below.
_PACKAGES = ("mxrt", "mxnet")


class _Gate:
    """Importing threads do not wait for each other, for they may need each other's modules."""

    def __init__(self) -> None:
        # Held by a fork, and for moments.
        self._door = allocate_lock()
        # For each importing thread how deep it is, and a lock that it holds to the end.
        self._importing: dict[int, tuple[int, Any]] = {}

    def enter(self) -> None:
        me = get_ident()
        held = self._importing.get(me)
        if held is not None:
            self._importing[me] = (held[0] + 1, held[1])
            return
        end = allocate_lock()
        end.acquire()
        with self._door:
            self._importing[me] = (1, end)

    def is_inside(self) -> bool:
        """Whether this thread executes a module."""
        return get_ident() in self._importing

    def leave(self) -> None:
        me = get_ident()
        depth, end = self._importing[me]
        if depth > 1:
            self._importing[me] = (depth - 1, end)
            return
        del self._importing[me]
        end.release()

    def before_fork(self) -> None:
        """Closes the door when no other thread imports."""
        limit = time.monotonic() + _PATIENCE_S
        while True:
            self._door.acquire()
            other = next((end for thread, (_, end) in list(self._importing.items()) if thread != get_ident()), None)
            left = limit - time.monotonic()
            if left <= 0 or (other is None and not _others_import(_PACKAGES)):
                return
            self._door.release()
            if other is None:
                time.sleep(0.001)
            else:
                other.acquire(timeout=left)

    def after_in_parent(self) -> None:
        self._door.release()

    def after_in_child(self) -> None:
        me = get_ident()
        self._door = allocate_lock()
        self._importing = {thread: held for thread, held in self._importing.items() if thread == me}
        _forget_what_others_began()


_gate = _Gate()
_turn = fork_safe_lock()


def load(name: str) -> ModuleType:
    """Imports a module of mxrt at its first use, when no other thread does so.

    A thread that executes a module waits for no turn: what it holds another may need.
    """
    if _gate.is_inside():
        return importlib.import_module(name)
    with _turn:
        # The package first: Python takes the lock of a module before that of its package.
        if "." in name:
            importlib.import_module(name.rpartition(".")[0])
        return importlib.import_module(name)


class _Loader(importlib.machinery.SourceFileLoader):
    """Executes a module inside the gate, and gives it names that MXNet's has."""

    executed = False

    def exec_module(self, module: ModuleType) -> None:
        _gate.enter()
        try:
            super().exec_module(module)
            attach(module)
            self.executed = True
        finally:
            _gate.leave()


class _Finder:
    """Finds modules of mxrt where Python finds them.

    It has no base class, as `importlib.abc` would cost each import 10 ms.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("mxrt."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _locks_of_others() -> list[str]:
    """The names of modules whose locks other threads hold."""
    locks = list(_module_locks().items())
    return [name for name, reference in locks if getattr(reference(), "owner", None) not in (None, get_ident())]


def _module_locks() -> dict[str, Any]:
    """Python's lock for each module that is being imported, as a weak reference."""
    return getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})


def _others_import(names: Sequence[str]) -> bool:
    return any(name in names for name in _locks_of_others())


def _forget_what_others_began() -> None:
    """Drops the locks of threads that a child does not have, and modules they had not executed."""
    for name in _locks_of_others():
        package = name.split(".")[0]
        if package not in _PACKAGES and package not in sys.stdlib_module_names:
            continue
        _module_locks().pop(name, None)
        if name in sys.modules and _is_half_done(sys.modules[name]):
            del sys.modules[name]


def _is_half_done(module: ModuleType) -> bool:
    spec = getattr(module, "__spec__", None)
    loader = getattr(spec, "loader", None)
    return not loader.executed if isinstance(loader, _Loader) else getattr(spec, "_initializing", False)


sys.meta_path.insert(0, _Finder())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.before_fork,
        after_in_parent=_gate.after_in_parent,
        after_in_child=_gate.after_in_child,
    )
