"""Blocks under the numpy interface.

Code of a program gets arrays and symbols of ``mx.np``. The layers of mxrt are written with the
operators of ``mx.nd``: they get what shares the elements, and what they return is converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from .._scopes.np_mode import is_np_array, made_here
from ..context import Context
from ..ndarray import NDArray, array
from ..symbol import Symbol

if TYPE_CHECKING:
    from .hybrid_block import HybridBlock

__all__ = ["added", "array_here", "as_made_here", "converted", "made_here", "makes_np", "run_forward"]

_Value = TypeVar("_Value", bound=Any)

_OWN = f"{__package__.partition('.')[0]}."


def converted(value: Any, to_np: bool) -> Any:
    """Nested lists whose arrays and symbols are those of ``mx.np``, or of ``mx.nd``."""
    if isinstance(value, (NDArray, Symbol)):
        return value.as_np_ndarray() if to_np else value.as_nd_ndarray()
    if isinstance(value, (list, tuple)):
        parts = [converted(part, to_np) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def added(one: Any, other: Any) -> Any:
    """The sum of two arrays or symbols in a layer of mxrt, where what it was given and what a block
    in it returned are of two interfaces.
    """
    return converted(one, False) + converted(other, False)


def as_made_here(value: _Value) -> _Value:
    """Nested lists of arrays as gluon makes them: those of ``mx.np`` under the numpy interface."""
    made: _Value = converted(value, True) if is_np_array() else value
    return made


def array_here(value: Any, ctx: Context | None = None) -> NDArray:
    """The array that gluon makes of a value: by ``mx.np.array`` under the numpy interface, by
    ``mx.nd.array`` otherwise.
    """
    if not is_np_array():
        return array(value, ctx=ctx)
    from ..numpy import array as np_array

    made: NDArray = np_array(value, ctx=ctx)
    return made


def makes_np(out: Symbol) -> bool:
    """Whether the arrays that a graph makes are those of ``mx.np``: its symbol says so."""
    return type(out) is not Symbol and out.as_np_ndarray() is out


def run_forward(block: HybridBlock, F: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """``hybrid_forward`` of a block, in the way of the interface that is switched on."""
    if not is_np_array():
        return block.hybrid_forward(F, *args, **params)
    own = str(block.hybrid_forward.__module__).startswith(_OWN) and not block._calls_the_program
    # A layer with a weight looks for its very array, and passes it to operators only.
    if not (own and block._takes_parameters_as_they_are):
        params = {name: converted(value, not own) for name, value in params.items()}
    args = converted(args, not own)
    out = block.hybrid_forward(F, *args, **params)
    if not own and len(_interfaces(out)) > 1:
        raise TypeError(
            f"{type(block).__name__}: some outputs are of mx.np and others of mx.nd or mx.sym; call as_np_ndarray() "
            "or as_nd_ndarray() on them"
        )
    return converted(out, True)


def _interfaces(value: Any) -> set[bool]:
    """Whether the arrays and symbols in nested lists are of ``mx.np``: the answers that occur."""
    if isinstance(value, (NDArray, Symbol)):
        return {value.as_np_ndarray() is value}
    if isinstance(value, (list, tuple)):
        return {answer for part in value for answer in _interfaces(part)}
    return set()
