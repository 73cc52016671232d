"""Names of blocks: what ``with block.name_scope()`` does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from .. import name as naming
from .._system.locks import fork_safe_lock
from .._values.overrulable import overrulable
from .parameter_dict import ParameterDict

if TYPE_CHECKING:
    from .block import Block

__all__ = ["BlockScope"]


class _Entered(threading.local):
    """Scopes that this thread is in: the block's scope, and the names of operators, None where
    nothing changes.
    """

    def __init__(self) -> None:
        self.stack: list[tuple[BlockScope, naming.Prefix] | None] = []
        self.current: list[BlockScope] = []

    @property
    def value(self) -> BlockScope | None:
        """The innermost scope, as programs of MXNet read it."""
        return self.current[-1] if self.current else None


_entered = _Entered()
_counting = fork_safe_lock()


class BlockScope:
    """Counts the children of a block: those made in its ``with`` block are named after it.

    Which scopes a thread is in is known to that thread alone; the counters are the block's. The
    block does not hold the scope, so that a block that is dropped gives its memory back at once.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        # Programs also enter scopes of things that have a prefix and are no blocks.
        self._counter: dict[str, int] = getattr(block, "_child_counts", {})

    # Names of MXNet that programs read.

    _current = _entered

    @overrulable
    def _name_scope(self) -> naming.Prefix | None:
        """The names of operators that this thread is in because of the block."""
        own = (one[1] for one in reversed(_entered.stack) if one is not None and one[0]._block is self._block)
        return next(own, None)

    @overrulable
    def _old_scope(self) -> BlockScope | None:
        """The scope of this thread around that of the block."""
        places = [place for place, one in enumerate(_entered.current) if one._block is self._block]
        return _entered.current[places[-1] - 1] if places and places[-1] else None

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """Prefix and dictionary of parameters of a new block."""
        if not _entered.current:
            if prefix is None:
                prefix = naming.current().get(None, hint) + "_"
            if params is None:
                return prefix, ParameterDict(prefix)
            return prefix, ParameterDict(params.prefix, params)
        scope = _entered.current[-1]
        if prefix is None:
            with _counting:
                count = scope._counter.get(hint, 0)
                scope._counter[hint] = count + 1
            prefix = f"{hint}{count}_"
        if params is None:
            parent = scope._block.params
            params = ParameterDict(parent.prefix + prefix, parent._shared)
        else:
            params = ParameterDict(params.prefix, params)
        return scope._block.prefix + prefix, params

    def __enter__(self) -> BlockScope:
        if self._block._empty_prefix:
            _entered.stack.append(None)
            return self
        names = naming.Prefix(self._block.prefix)
        names.__enter__()
        _entered.stack.append((self, names))
        _entered.current.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        entered = _entered.stack.pop()
        if entered is not None:
            _entered.current.pop()
            entered[1].__exit__(*exception)
