"""Locks that are open in a forked child, whichever thread of the parent held them."""

from __future__ import annotations

import os
import weakref
from typing import Any

from .native import RLock

__all__ = ["fork_safe_lock"]

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def fork_safe_lock() -> Any:
    """A reentrant lock. In a forked child it is open, unless the thread that forked holds it.

    What it guards must be usable at every step of every change, as the thread that made a change
    may be missing there.
    """
    lock = RLock()
    _locks.add(lock)
    return lock


def _renew() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
