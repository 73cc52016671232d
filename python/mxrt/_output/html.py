"""Pictures of objects in notebooks: what their ``_repr_html_`` returns.

A value is waited for only a moment, and one that failed is shown as its error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from .. import _mxrt

if TYPE_CHECKING:
    from ..base import MXNetError
    from ..gluon import Block, Parameter, SymbolBlock
    from ..ndarray import NDArray
    from ..ndarray._sparse_arrays import BaseSparseNDArray
    from ..symbol import Symbol

__all__ = ["Figures", "PlanText", "of_array", "of_block", "of_error", "of_layers", "of_sparse", "of_symbol", "size_of"]

# Larger values are described; reading them would take long.
_MOST_SHOWN = 1 << 20
_MOST_LAYERS = 200
# Seconds that a picture waits for a value. Most cells end before the array that they show is ready.
_PATIENCE = 0.3


def escape(text: str) -> str:
    """Text for a page."""
    from html import escape as escaped  # 2 ms, where nobody may look at a picture

    return escaped(text)


def rows(title: str, pairs: Sequence[tuple[str, object]]) -> str:
    """A table of names and values below a title; everything is escaped."""
    body = "".join(
        f'<tr><th style="text-align:left">{escape(str(name))}</th>'
        f'<td style="text-align:left"><code>{escape(str(value))}</code></td></tr>'
        for name, value in pairs
    )
    return f"<div><strong>{escape(title)}</strong><table>{body}</table></div>"


def ready_soon(array: NDArray) -> bool:
    """Whether a value is ready, or was after some patience."""
    end = monotonic() + _PATIENCE
    while not (ready := _mxrt.is_ready(array)) and monotonic() < end:
        sleep(0.002)
    return ready


def of_array(array: NDArray) -> str:
    """An array: type, shape, context and value, as far as it is known now."""
    from ..base import MXNetError

    name = type(array).__name__
    if not ready_soon(array):
        return rows(name, [("state", "is being computed"), ("context", array.context)])
    try:
        array.wait_to_read()
        facts: list[tuple[str, object]] = [("shape", array.shape), ("dtype", array._dtype_name)]
        shown = f"<pre>{escape(str(array.asnumpy()))}</pre>" if array.size <= _MOST_SHOWN else ""
    except MXNetError as error:
        return rows(name, [("state", "failed"), ("error", error)])
    return rows(name, [*facts, ("context", array.context)]) + shown


def of_error(error: MXNetError) -> str:
    """An error with all that it knows."""
    named = (
        "code",
        "kind",
        "op",
        "node",
        "input",
        "got",
        "wanted",
        "shapes",
        "dtypes",
        "device",
        "request",
        "pushed_at",
    )
    known = [(name, value) for name in named if (value := getattr(error, name, None))]
    return rows(type(error).__name__, [("message", error.message), *known])


class Figures(dict[str, Any]):
    """A dictionary of figures by name, which a notebook shows as a table, bytes in MB as well."""

    def _repr_html_(self) -> str:
        return rows("figures", [(name, _figure(name, value)) for name, value in self.items()])


class PlanText(str):
    """The text of a plan, which a notebook shows as the page of `mxrt plan --html`."""

    report: dict[str, Any]

    def __new__(cls, report: dict[str, Any]) -> PlanText:
        """Makes one of a report with the fields that the page needs."""
        made = super().__new__(cls, report["text"])
        made.report = report
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return PlanText, (self.report,)

    def _repr_html_(self) -> str:
        from ..cli._page import page

        frame = "width:100%;height:40rem;border:0"
        return f'<iframe sandbox="" style="{frame}" srcdoc="{escape(page(self.report))}"></iframe>'


def _figure(name: str, value: object) -> object:
    if isinstance(value, int) and (name.endswith("bytes") or name in ("in_use", "peak", "limit", "cached", "total")):
        return f"{value / 1e6:,.2f} MB ({value:,} bytes)"
    return "none" if value is None else value


def of_symbol(symbol: Symbol) -> str:
    """A graph: inputs, outputs, and how many operators of each kind it has."""
    nodes = symbol._as_data()["nodes"]
    counts = Counter(node["op"] for node in nodes if node["op"] != "null")
    listed = ", ".join(f"{count} {name}" for name, count in counts.most_common(_MOST_LAYERS))
    variables = symbol.list_inputs()
    shown = ", ".join(variables[:20]) + (f" and {len(variables) - 20} more" if len(variables) > 20 else "")
    pairs = [("outputs", ", ".join(symbol.list_outputs()[:20])), ("variables", shown), ("operators", listed or "none")]
    return rows("Symbol " + (symbol.name or "group"), pairs)


def of_block(block: SymbolBlock) -> str:
    """A model: inputs, outputs, parameters."""
    return rows(type(block).__name__, block._facts())


def of_layers(block: Block) -> str:
    """A block that is a program: its name, parameters and layers."""
    facts = [("name", block.name), ("parameters", size_of(block.collect_params().values()))]
    return rows(type(block).__name__, facts) + f"<pre>{escape(repr(block))}</pre>"


def size_of(parameters: Collection[Parameter]) -> str:
    """The number of parameters, the size of those whose shape is known, and how many others there
    are.
    """
    import math

    import numpy as np

    from .._values.dtypes import dtype_class, dtype_name

    sized = [(one, math.prod(one.shape)) for one in parameters if one.shape and min(one.shape) > 0]
    kinds = sorted({dtype_name(one.dtype) for one in parameters})
    size = sum(count * np.dtype(dtype_class(dtype_name(one.dtype))).itemsize for one, count in sized)
    unknown = f", {len(parameters) - len(sized)} of unknown shape" if len(sized) < len(parameters) else ""
    return f"{len(parameters)}, {size / 1e6:.2f} MB" + (f" of {', '.join(kinds)}" if kinds else "") + unknown


def of_sparse(array: BaseSparseNDArray) -> str:
    """A sparse array: type, shape, context and, where they are known now, how many values it
    stores.
    """
    from ..base import MXNetError

    name = type(array).__name__
    facts: list[tuple[str, object]] = [
        ("storage", array.stype),
        ("shape", array.shape),
        ("dtype", array._dtype_name),
        ("context", array.context),
    ]
    if not ready_soon(array):
        return rows(name, [("state", "is being computed"), *facts])
    try:
        stored = array.data.shape
    except MXNetError as error:
        return rows(name, [("state", "failed"), ("error", error), *facts])
    return rows(name, [*facts, ("stored values", stored)])
