"""The table that ``Block.summary`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ndarray import NDArray
from .hybrid_block import HybridBlock

if TYPE_CHECKING:
    from .block import Block

__all__ = ["print_summary"]

_LINE = "{:>20}  {:>42} {:>15}"


def print_summary(block: Block, inputs: tuple[Any, ...]) -> None:
    """Runs a block on inputs and prints the outputs and parameters of every block inside."""
    from .nn import HybridSequential, Sequential

    rows: list[tuple[str, str, int]] = [("Input", _shapes(inputs), 0)]
    seen: set[int] = set()
    totals = {"all": 0, "trainable": 0, "shared": 0}
    hooks = []

    def note(block: Block, _: Any, outputs: Any) -> None:
        count = 0
        for parameter in block.params.values():
            size = parameter.data().size
            count += size
            totals["trainable"] += 0 if parameter.grad_req == "null" else size
            totals["shared"] += size if id(parameter) in seen else 0
            seen.add(id(parameter))
        totals["all"] += count
        rows.append((f"{type(block).__name__}-{len(rows)}", _shapes(outputs), count))

    def watch(block: Block) -> None:
        if isinstance(block, HybridBlock) and block._active:
            raise AssertionError(f'"{block.name}" must not be hybridized to print summary.')
        if not isinstance(block, (Sequential, HybridSequential)):
            hooks.append(block.register_forward_hook(note))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for hook in hooks:
            hook.detach()
    print("-" * 80)
    print(_LINE.format("Layer (type)", "Output Shape", "Param #"))
    print("=" * 80)
    for row in rows:
        print(_LINE.format(*row))
    print("=" * 80)
    print("Parameters in forward computation graph, duplicate included")
    print(f"   Total params: {totals['all']}")
    print(f"   Trainable params: {totals['trainable']}")
    print(f"   Non-trainable params: {totals['all'] - totals['trainable']}")
    print(f"Shared params in forward computation graph: {totals['shared']}")
    print(f"Unique parameters in model: {totals['all'] - totals['shared']}")
    print("-" * 80)


def _shapes(value: Any) -> str:
    """Shapes of arrays in a nested list, as text."""
    found = _shape_of(value)
    return str(found)[1:-1] if isinstance(found, list) else str(found)


def _shape_of(value: Any) -> Any:
    if isinstance(value, NDArray):
        return value.shape
    return [_shape_of(part) for part in value] if isinstance(value, (list, tuple)) else value
