"""Files of blocks: parameters, and how blocks are nested."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..ndarray import save as save_arrays
from ..symbol import load_json
from .parameter_dict import named_arrays, take_over

if TYPE_CHECKING:
    from .block import Block
    from .parameter import Parameter

__all__ = ["load_model", "load_parameters", "save_model", "save_parameters"]


def save_parameters(block: Block, filename: str, deduplicate: bool) -> None:
    """Writes the parameters of a block under the attributes that lead to them."""
    params = block._collect_params_with_prefix()
    if deduplicate:
        last = {id(parameter): name for name, parameter in params.items()}
        params = {name: params[name] for name in last.values()}
    save_arrays(filename, {name: parameter._reduce() for name, parameter in params.items()})


def load_parameters(
    block: Block,
    filename: str,
    ctx: Any,
    allow_missing: bool,
    ignore_extra: bool,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """Reads the parameters of a block."""
    values = named_arrays(filename)
    params = block._collect_params_with_prefix()
    if not values and not params:
        return
    # A parameter that is an attribute of the outermost block has no dot in its name.
    if not any("." in name for name in values) and not (values and values.keys() <= params.keys()):
        block.collect_params().load(
            filename, ctx, allow_missing, ignore_extra, block.prefix, cast_dtype=cast_dtype, dtype_source=dtype_source
        )
        return
    there = {id(params[name]) for name in values if name in params}
    missing = [] if allow_missing else [name for name, parameter in params.items() if id(parameter) not in there]
    extra = [] if ignore_extra else [name for name in values if name not in params]
    take_over(params, values, f"file: {filename}", ctx, cast_dtype, dtype_source, missing, extra, own=True)


def save_model(block: Block, prefix: str) -> None:
    """Writes how blocks are nested, the graphs of hybridised ones, and the parameters."""
    model: dict[str, Any] = {}
    _describe(block, [0], model)
    with open(f"{prefix}-model.json", "w") as file:
        json.dump(model, file)
    save_parameters(block, f"{prefix}-model.params", False)


def _describe(block: Block, number: list[int], into: dict[str, Any]) -> None:
    """Adds a block to the description of its parent. Blocks are numbered in the order in which they
    are met.
    """
    from .hybrid_block import HybridBlock

    entry: dict[str, Any] = {"orig_name": block.name}
    into[f"{type(block).__name__.lower()}{number[0]}"] = entry
    if isinstance(block, HybridBlock):
        traced = block._cached_graph
        entry["hybridized"] = bool(traced)
        if traced:
            inputs, out = traced
            entry["in_format"], entry["out_format"] = block._in_format, block._out_format
            entry["inputs"] = [symbol.tojson() for symbol in inputs]
            entry["symbol"] = out.tojson()
    children: dict[str, str] = {}
    entry["children"] = children
    for name, child in block._children.items():
        number[0] += 1
        children[child.name] = name
        _describe(child, number, entry)


def load_model(block: Block, prefix: str) -> None:
    """Gives a block names, graphs and parameters of one that was made in the same way."""
    with open(f"{prefix}-model.json") as file:
        model = json.load(file)
    _restore(block, [0], model, f"{prefix}-model.json")
    load_parameters(block, f"{prefix}-model.params", None, False, False, False, "current")


def _restore(block: Block, number: list[int], described: dict[str, Any], where: str) -> None:
    from .hybrid_block import HybridBlock

    key = f"{type(block).__name__.lower()}{number[0]}"
    if key not in described:
        raise ValueError(f"'{where}' has no block '{key}': the block was made in another way than the one saved")
    entry = described[key]
    block._name = entry["orig_name"]
    if isinstance(block, HybridBlock) and entry["hybridized"]:
        inputs = [load_json(text) for text in entry["inputs"]]
        block._restore_graph(inputs, load_json(entry["symbol"]), entry["in_format"], entry["out_format"])
    own = block.params
    renamed: dict[str, Parameter] = {f"{block.name}_{name[len(own.prefix) :]}": p for name, p in own.items()}
    own._params.clear()
    own._params.update(renamed)
    children = list(block._children.items())
    names = []
    for _, child in children:
        number[0] += 1
        _restore(child, number, entry, where)
        names.append(entry["children"][child.name])
    block._children.clear()
    block._children.update((name, child) for name, (_, child) in zip(names, children, strict=True))
