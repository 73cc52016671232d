"""Graphs that are converted to mixed precision, by MXNet for its record and by mxrt in tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# The shapes of what each graph is given; the others are parameters.
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "layers": {"data": (2, 3, 10, 10)},
    "residual": {"data": (2, 3, 6, 6)},
    "shared": {"data": (2, 5)},
    "typed": {"x": (2, 4)},
    "recurrent": {"data": (2, 3)},
    "two": {"a": (2,), "b": (2,)},
    "mixed": {"data": (2, 2, 4, 4)},
}


def graph(mx: Any, name: str) -> Any:
    """One of the graphs."""
    sym, var = mx.sym, mx.sym.Variable
    data = var("data")
    if name == "layers":
        net = sym.Convolution(data, num_filter=4, kernel=(3, 3), name="conv")
        net = sym.Activation(sym.BatchNorm(net, name="norm"), act_type="relu", name="relu")
        net = sym.Activation(net, act_type="softrelu", name="softrelu")
        net = sym.Pooling(net, kernel=(2, 2), pool_type="max", stride=(2, 2), name="pool")
        return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="dense"), name="softmax")
    if name == "residual":
        conv = sym.Convolution(data, num_filter=3, kernel=(3, 3), pad=(1, 1), name="conv")
        added = sym.elemwise_add(conv, data, name="added")
        joined = sym.Concat(sym.relu(added, name="relu"), conv, data, name="joined")
        return sym.Group([sym.log_softmax(sym.exp(joined, name="exp"), name="log"), added, conv])
    if name == "shared":
        weight = var("weight")
        net = sym.FullyConnected(data, weight, num_hidden=5, no_bias=True, name="one")
        net = sym.FullyConnected(net, weight, num_hidden=5, no_bias=True, name="other")
        total = sym.sum(weight, axis=0, keepdims=True, name="total")
        net = sym.broadcast_add(sym.L2Normalization(net, name="unit"), total, name="plus")
        return sym.dot(net, sym.transpose(weight, name="turned"), name="product")
    if name == "typed":
        weight = var("weight", dtype="float32")
        return sym.FullyConnected(var("x", dtype="float32"), weight=weight, num_hidden=5, name="dense")
    if name == "recurrent":
        net = sym.transpose(sym.Embedding(data, input_dim=9, output_dim=4, name="words"), axes=(1, 0, 2), name="turned")
        rnn = sym.RNN(net, state_size=4, num_layers=1, mode="lstm", name="rnn", state_outputs=True)
        half = sym.SliceChannel(rnn[0], num_outputs=2, axis=2, name="half")
        chosen = sym.where(sym._internal._greater_scalar(half[0], scalar=0, name="up"), half[0], half[1], name="chosen")
        total = sym.add_n(chosen, half[0], half[1], name="total")
        norm = sym.LayerNorm(sym._internal._maximum(total, half[0], name="larger"), name="norm")
        stacked = sym.stack(chosen, half[1], axis=0, name="stacked")
        return sym.Group([stacked, norm, rnn[1], sym.Cast(norm, dtype="float16", name="cast")])
    if name == "two":
        return sym.elemwise_add(var("a"), var("b"), name="added")
    net = sym.Deconvolution(data, kernel=(2, 2), num_filter=2, stride=(2, 2), name="wider")
    net = sym.LeakyReLU(sym.InstanceNorm(net, name="norm"), act_type="prelu", name="slope")
    selu = sym.LeakyReLU(net, act_type="selu", name="selu")
    return sym.Group([selu, sym.Activation(net, act_type="tanh", name="tanh"), sym.Flatten(net, name="flat")])


def values(mx: Any, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of a graph."""
    symbol, given = graph(mx, name), SHAPES[name]
    arg_shapes, _, aux_shapes = symbol.infer_shape(**given)
    rng = np.random.RandomState(0)
    args = {
        n: rng.uniform(-1, 1, s) for n, s in zip(symbol.list_arguments(), arg_shapes, strict=True) if n not in given
    }
    aux = {n: rng.uniform(0.5, 1, s) for n, s in zip(symbol.list_auxiliary_states(), aux_shapes, strict=True)}
    args.pop("softmax_label", None)
    return {n: mx.nd.array(v) for n, v in args.items()}, {n: mx.nd.array(v) for n, v in aux.items()}


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "excluded": {"excluded_sym_names": ["conv", "dense", "relu", "exp"]},
    "operators": {
        "target_dtype_ops": ["Convolution", "exp"],
        "fp32_ops": ["FullyConnected", "relu"],
        "conditional_fp32_ops": [],
    },
    "conditional": {"conditional_fp32_ops": [("Activation", "act_type", ["relu"]), ("Pooling", "pool_type", ["avg"])]},
}


def cases() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Names, and functions that convert by mxnet or mxrt."""
    for name in SHAPES:
        for cast in (False, True):
            yield (
                f"{name} symbol {cast}",
                lambda mx, n=name, c=cast: _amp(mx).convert_symbol(graph(mx, n), cast_optional_params=c),
            )
            for option, given in OPTIONS.items():
                if option == "plain" or name in ("layers", "residual"):
                    yield (
                        f"{name} {option} {cast}",
                        lambda mx, n=name, c=cast, g=given: _amp(mx).convert_model(
                            graph(mx, n), *values(mx, n), cast_optional_params=c, **g
                        ),
                    )


def _amp(mx: Any) -> Any:
    from importlib import import_module

    return import_module(f"{mx.__name__}.contrib.amp")


def converted(mx: Any, convert: Callable[[Any], Any]) -> Any:
    """The result of a conversion: nodes, results, types of parameters; None where it fails."""
    try:
        made = convert(mx)
    except (mx.base.MXNetError, KeyError):
        return None
    symbol, *params = made if isinstance(made, tuple) else (made,)
    found = json.loads(symbol.tojson(remove_amp_cast=False))
    nodes = [[n["op"], n["name"], n.get("attrs", {}), n["inputs"]] for n in found["nodes"]]
    types = {name: str(np.dtype(value.dtype)) for part in params for name, value in part.items()}
    return {"nodes": nodes, "heads": found["heads"], "types": types}
