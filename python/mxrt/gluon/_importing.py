"""Models from files: a symbol and its parameters."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from .. import symbol as symbols
from ..symbol import Symbol
from ..symbol._files import text_of
from ._numpy import as_made_here
from .parameter_dict import named_arrays, strip_kind

if TYPE_CHECKING:
    from .symbol_block import SymbolBlock

__all__ = ["imported"]

# What a file holds, given in place of its path.
_BYTES = (bytes, bytearray, memoryview)


def imported(
    cls: type[SymbolBlock],
    symbol_file: str | bytes,
    input_names: str | Iterable[str],
    param_file: str | bytes | None,
    ctx: Any,
    allow_missing: bool,
    ignore_extra: bool,
) -> SymbolBlock:
    """The block of a symbol file and a parameter file: :meth:`SymbolBlock.imports`."""
    if isinstance(symbol_file, _BYTES):
        graph = symbols.load_json(text_of(bytes(symbol_file), "symbol_file"))
    else:
        graph = symbols.load(symbol_file)
    graph = as_made_here(graph)
    names = [input_names] if isinstance(input_names, str) else list(input_names)
    block = cls(graph, [symbols.var(name) for name in names])
    if param_file is None:
        return block
    if isinstance(param_file, _BYTES):
        param_file, said = bytes(param_file), "param_file"
    else:
        said = f"file: {param_file}"
    values = {strip_kind(name): value for name, value in named_arrays(param_file).items()}
    params = block.collect_params()
    # A value for something that is an input of this block is of no use, and does no harm.
    params._load(
        values,
        said,
        ctx,
        allow_missing,
        ignore_extra,
        cast_dtype=True,
        dtype_source="saved",
        own=True,
        idle=names,
        hint=_hint(graph, names, values),
    )
    return block


def _hint(graph: Symbol, names: list[str], values: Container[str]) -> str:
    """Returns the cause of parameters that do not fit, where it is a wrong name of an input."""
    inputs = graph.list_inputs()
    unknown = [repr(name) for name in names if name not in inputs]
    free = [repr(name) for name in inputs if name not in values and name not in names]
    if not unknown or not free:
        return ""
    return (
        f"input_names: the symbol has no input called {', '.join(unknown)}. Its inputs without a value in the file "
        f"are {', '.join(free[:20])}"
    ) + (f" and {len(free) - 20} more." if len(free) > 20 else ".")
