"""Changes of the arrays that parameters hold: all of a change is seen, or nothing."""

from __future__ import annotations

from typing import Any

from .._system.locks import fork_safe_lock

__all__ = ["Publish", "generation", "publishing"]

# Which arrays the parameters of the process hold: changed whenever one is replaced, so that blocks
# notice.
publishing: Any = fork_safe_lock()
_generation = 0


def generation() -> int:
    """A number that changes when any parameter gets another array."""
    return _generation


class Publish:
    """Replaces the arrays of parameters: a thread that collects arrays under the same lock sees all
    changes or none.
    """

    def __enter__(self) -> None:
        publishing.acquire()

    def __exit__(self, *exception: Any) -> None:
        global _generation
        _generation += 1
        publishing.release()
