"""CachedOp: a compiled graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _mxrt
from ..base import MXNetTypeError

if TYPE_CHECKING:
    from ..symbol import Symbol

__all__ = ["CachedOp"]


class CachedOp:
    """A graph, compiled once per signature of its inputs; any number of threads may call it at the same time.

    Called with arrays in the order of ``sym.list_inputs()``; returns at once, with one array or a list of them.
    """

    __slots__ = ("_op", "sym")

    def __init__(self, sym: Symbol, flags: Any = (), thread_safe: bool = True) -> None:
        if not isinstance(sym, _mxrt.SymbolBase):
            raise MXNetTypeError(f"CachedOp: the graph must be a Symbol, got {type(sym)}; mx.sym.load reads one")
        self.sym = sym
        self._op = _mxrt.CachedOp(sym, dict(flags))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        kwargs.pop("default_ctx", None)
        if kwargs:
            raise TypeError(f"CachedOp.__call__ got unexpected keyword argument(s): {', '.join(kwargs)}")
        return self._op(*args, out=out)

    def plan(self, *args: Any) -> str:
        """The compiled form for inputs like these, as text."""
        return self._op.plan(*args)

    def __repr__(self) -> str:
        return f"<CachedOp {self.sym!r}>"
