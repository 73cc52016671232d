"""The table that ``Block.summary`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._graphs.layers import layers_of
from ..ndarray import NDArray
from ..symbol import Symbol
from .hybrid_block import HybridBlock

if TYPE_CHECKING:
    from .block import Block
    from .parameter_dict import ParameterDict

__all__ = ["print_graph_summary", "print_summary"]

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


def print_graph_summary(graph: Symbol, inputs: dict[str, Any], params: ParameterDict) -> None:
    """Prints the layers of a graph for inputs of these shapes."""
    shapes = {name: tuple(value.shape) for name, value in inputs.items()}
    held = {name: one.shape for name, one in params.items() if one.shape and min(one.shape) > 0}
    arguments, _, states = graph.infer_shape(**{**held, **shapes})  # what does not fit is said here
    # Parameters that wait for their shapes count, too.
    inferred = zip([*graph.list_arguments(), *graph.list_auxiliary_states()], [*arguments, *states], strict=True)
    held = {name: shape for name, shape in inferred if name in params}
    layers = layers_of(graph, shapes, held)
    widest = max([len(one.name) for one in layers] + [5])
    row = f"{{:<{widest}}}  {{:<16}} {{:>18}} {{:>11}} {{:>9}}"
    lines = [row.format("Layer", "Operator", "Output", "Param #", "M mult")]
    for one in layers:
        millions = "" if not one.macs else f"{one.macs / 1e6:.2f}"
        output = "?" if one.output is None else str(one.output)
        lines.append(row.format(one.name, one.operator, output, one.parameters, millions).rstrip())
    total, work = sum(one.parameters for one in layers), sum(one.macs or 0 for one in layers)
    print("\n".join(lines))
    print(f"{len(layers)} layers, {total:,} parameters, {work / 1e6:,.1f} million multiplications")
