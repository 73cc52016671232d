"""Writes the files of this folder: what MXNet 1.9.1 answers. Run it with a Python that has MXNet.

python tests/recorded/record.py
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections import Counter
from pathlib import Path

import mxnet as mx
import numpy as np

HERE = Path(__file__).parent
rng = np.random.RandomState(5)


def listed(array) -> dict:
    array = np.asarray(array)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.ravel().tolist()}


def scores(rows: int, classes: int):
    raw = rng.rand(rows, classes).astype("float32") + 0.05
    return (raw / raw.sum(axis=1, keepdims=True)).round(4)


def metric_cases() -> list:
    """Name, arguments, and two batches of labels and predictions for every metric."""
    classes = [(rng.randint(0, 5, 8).astype("float32"), scores(8, 5)) for _ in range(2)]
    binary = [(rng.randint(0, 2, 12).astype("float32"), scores(12, 2)) for _ in range(2)]
    numbers = [(rng.randn(6).astype("float32").round(3), rng.randn(6, 1).astype("float32").round(3)) for _ in range(2)]
    equal = [(a, b.ravel()) for a, b in numbers]
    chosen = [(label, scores(8, 5).argmax(axis=1).astype("float32")) for label, _ in classes]
    images = [(rng.randint(0, 3, (2, 4, 4)).astype("float32"), scores(32, 3).reshape(2, 3, 4, 4)) for _ in range(2)]
    words = [(rng.randint(0, 5, (2, 4)).astype("float32"), scores(8, 5)) for _ in range(2)]
    return [
        ("acc", {}, classes),
        ("acc", {}, chosen),
        ("accuracy", {"axis": 1, "name": "mine"}, images),
        ("top_k_accuracy", {"top_k": 3}, classes),
        ("top_k_acc", {"top_k": 2}, classes),
        ("f1", {}, binary),
        ("f1", {"average": "micro"}, binary),
        ("mcc", {}, binary),
        ("mcc", {"average": "micro"}, binary),
        ("pcc", {}, classes),
        ("pcc", {}, chosen),
        ("perplexity", {"ignore_label": None}, classes),
        ("perplexity", {"ignore_label": 2}, classes),
        ("perplexity", {"ignore_label": 0, "axis": -1}, words),
        ("mae", {}, numbers),
        ("mse", {}, numbers),
        ("rmse", {}, numbers),
        ("mae", {}, equal),
        ("ce", {}, classes),
        ("crossentropy", {"eps": 1e-3}, classes),
        ("nll_loss", {}, classes),
        ("pearsonr", {}, equal),
        ("pearsonr", {"average": "micro"}, equal),
        ("loss", {}, numbers),
        ("torch", {}, numbers),
        ("caffe", {}, numbers),
    ]


def metrics() -> list:
    found = []
    for name, arguments, batches in metric_cases():
        metric = mx.metric.create(name, **arguments)
        entry = {"metric": name, "arguments": arguments, "batches": [], "empty": metric.get()[0]}
        for place, (label, pred) in enumerate(batches):
            metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
            entry["batches"].append({"label": listed(label), "pred": listed(pred), "value": float(metric.get()[1])})
            if place == 0:
                metric.reset_local()
        entry["global"] = float(metric.get_global()[1])
        entry["config"] = metric.get_config()
        entry["text"] = str(metric).split(":")[0]
        found.append(entry)
    return found


def schedules() -> list:
    made = [
        ("FactorScheduler", {"step": 10, "factor": 0.5, "base_lr": 0.2, "stop_factor_lr": 0.03}),
        ("FactorScheduler", {"step": 7, "factor": 0.9, "warmup_steps": 5, "warmup_begin_lr": 0.001}),
        ("MultiFactorScheduler", {"step": [5, 12, 30], "factor": 0.1, "base_lr": 1.0}),
        ("PolyScheduler", {"max_update": 40, "base_lr": 0.3, "pwr": 3, "final_lr": 0.01}),
        ("CosineScheduler", {"max_update": 35, "base_lr": 0.4, "final_lr": 0.02, "warmup_steps": 8}),
        ("CosineScheduler", {"max_update": 20, "warmup_steps": 4, "warmup_mode": "constant"}),
    ]
    found = []
    for name, arguments in made:
        schedule = getattr(mx.lr_scheduler, name)(**arguments)
        found.append({"name": name, "arguments": arguments, "rates": [schedule(n) for n in range(50)]})
    return found


def networks() -> dict:
    data = mx.sym.var("data")
    first = mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, stride=(2, 2), name="conv")
    norm = mx.sym.BatchNorm(first, name="norm", fix_gamma=False)
    act = mx.sym.Activation(norm, act_type="relu", name="act")
    side = mx.sym.Convolution(act, kernel=(1, 1), num_filter=8, no_bias=True, num_group=2, name="side")
    both = mx.sym.Concat(act, side, name="both")
    pool = mx.sym.Pooling(both + 1, kernel=(2, 2), stride=(2, 2), pool_type="avg", name="pool")
    leaky = mx.sym.LeakyReLU(pool, act_type="leaky", slope=0.1, name="leaky layer")
    flat = mx.sym.Flatten(leaky, name="flat")
    net = mx.sym.FullyConnected(mx.sym.Dropout(flat, name="drop"), num_hidden=10, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    words = mx.sym.Embedding(mx.sym.var("words"), input_dim=50, output_dim=6, name="embed")
    parts = mx.sym.split(words, num_outputs=2, axis=2, name="parts")
    text = mx.sym.FullyConnected(parts[0] * parts[1], num_hidden=4, no_bias=True, name="dense")
    return {"image": (net, {"data": (2, 3, 18, 18)}), "text": (text, {"words": (2, 5)})}


def drawings() -> dict:
    found = {}
    for name, (symbol, shape) in networks().items():
        types = {next(iter(shape)): "float32"}
        entry = {"json": symbol.tojson(), "shape": shape, "summaries": [], "drawings": []}
        for arguments in ({}, {"shape": shape}, {"shape": shape, "line_length": 90, "positions": [30, 50, 60, 90]}):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                mx.viz.print_summary(symbol, **arguments)
            entry["summaries"].append({"arguments": arguments, "text": out.getvalue()})
        for arguments in ({}, {"shape": shape, "title": "my net"}, {"hide_weights": False}, {"dtype": types}):
            if name == "text" and "shape" in arguments:
                continue
            source = mx.viz.plot_network(symbol, **arguments).source
            entry["drawings"].append({"arguments": arguments, "source": source})
        found[name] = entry
    return found


def vocabularies() -> dict:
    text = " Life is great ! \n life is good . \n is it ? \n"
    counter = mx.contrib.text.utils.count_tokens_from_str(text, to_lower=True)
    found = {"text": text, "counts": dict(counter), "vocabularies": []}
    for arguments in (
        {},
        {"most_freq_count": 3},
        {"min_freq": 2},
        {"unknown_token": "<?>", "reserved_tokens": ["<pad>", "is"], "most_freq_count": 4},
    ):
        made = mx.contrib.text.vocab.Vocabulary(Counter(counter), **arguments)
        entry = {"arguments": arguments, "tokens": made.idx_to_token, "of": made.to_indices(["life", "nothing", "is"])}
        found["vocabularies"].append(entry)
    return found


def initializers() -> list:
    warnings.simplefilter("ignore")
    found = []
    for name, arguments, shape in (
        ("bilinear", {}, (2, 1, 4, 4)),
        ("bilinear", {}, (1, 2, 5, 5)),
        ("lstmbias", {"forget_bias": 2.0}, (12,)),
        ("constant", {"value": 3.5}, (2, 3)),
        ("zeros", {}, (2,)),
        ("ones", {}, (2,)),
    ):
        array = mx.nd.empty(shape)
        made = mx.init.create(name, **arguments)
        made._init_weight("w", array)
        found.append({"name": name, "arguments": arguments, "dumps": made.dumps(), "array": listed(array.asnumpy())})
    for name, arguments in (
        ("xavier", {}),
        ("xavier", {"rnd_type": "gaussian", "factor_type": "in", "magnitude": 2}),
        ("msraprelu", {"factor_type": "out", "slope": 0.1}),
        ("uniform", {"scale": 0.2}),
        ("normal", {"sigma": 0.3}),
    ):
        mx.random.seed(3)
        array = mx.nd.empty((40, 20, 3, 3))
        made = mx.init.create(name, **arguments)
        made(mx.init.InitDesc("some_weight"), array)
        values = array.asnumpy()
        spread = {"deviation": float(values.std()), "largest": float(np.abs(values).max())}
        found.append({"name": name, "arguments": arguments, "dumps": made.dumps(), "spread": spread})
    return found


def named_values() -> list:
    """How a parameter begins by its name alone, a string or that of a variable: its values, or the
    class of the error.
    """
    warnings.simplefilter("ignore")
    ends = "weight bias gamma beta min max weight_quantize bias_quantize moving_mean moving_var moving_inv_var"
    names = [f"x_{end}" for end in (*ends.split(), "moving_avg", "running_mean", "running_var", "label")]
    names += ["alpha", "weight", "weights", "upsampling0_weight", "my_upsampling_weight"]
    names += ["stn_loc_weight", "stn_loc_bias", "stn_loc_gamma"]
    found = []
    for name in names:
        for kind, given in (("string", name), ("variable", mx.init.InitDesc(name))):
            array = mx.nd.empty((6,) if name.endswith("bias") else (1, 1, 4, 4))
            try:
                mx.init.Constant(7.0)(given, array)
                values = array.asnumpy().ravel().tolist()
            except Exception as error:
                values = type(error).__name__
            found.append({"name": name, "kind": kind, "values": values})
    return found


def filled(shapes: list) -> list:
    """Arrays of numbers that a test makes again."""
    return [np.sin(np.arange(np.prod(shape)) * 0.3 + place).reshape(shape) for place, shape in enumerate(shapes)]


def cell_cases() -> list:
    """How a cell is made, with `rnn` the module; the shape of its inputs for one step; and
    arguments of unroll.
    """
    fused = "rnn.FusedRNNCell(4, num_layers=2, mode='{}', bidirectional={}, prefix='f_').unfuse()"
    return [
        ("rnn.RNNCell(4)", (3, 5), {}),
        ("rnn.RNNCell(4, activation='relu', prefix='r_')", (3, 5), {"merge_outputs": True}),
        ("rnn.LSTMCell(4)", (3, 5), {"layout": "TNC", "merge_outputs": True}),
        ("rnn.LSTMCell(4, forget_bias=2.0)", (3, 5), {"merge_outputs": False}),
        ("rnn.GRUCell(4)", (3, 5), {"merge_outputs": True}),
        ("rnn.ResidualCell(rnn.GRUCell(5))", (3, 5), {"merge_outputs": True}),
        ("rnn.ResidualCell(rnn.GRUCell(5))", (3, 5), {}),
        ("rnn.ZoneoutCell(rnn.RNNCell(4), 0.3, 0.2)", (3, 5), {"merge_outputs": True}),
        ("rnn.BidirectionalCell(rnn.LSTMCell(2, prefix='l_'), rnn.GRUCell(3, prefix='r_'))", (3, 5), {}),
        (
            "rnn.BidirectionalCell(rnn.LSTMCell(2, prefix='l_'), rnn.GRUCell(3, prefix='r_'))",
            (3, 5),
            {"merge_outputs": True},
        ),
        (fused.format("lstm", True), (3, 5), {"merge_outputs": True}),
        (fused.format("gru", False), (3, 5), {}),
        (fused.format("rnn_relu", False), (3, 5), {"merge_outputs": True, "layout": "TNC"}),
        ("rnn.ConvRNNCell((1, 2, 6, 6), 3)", (2, 2, 6, 6), {}),
        ("rnn.ConvLSTMCell((1, 2, 6, 6), 3, h2h_kernel=(5, 5), i2h_stride=(2, 2))", (2, 2, 6, 6), {}),
        ("rnn.ConvGRUCell((1, 2, 6, 6), 3, activation='tanh')", (2, 2, 6, 6), {}),
    ]


def cells() -> list:
    found = []
    for make, shape, arguments in cell_cases():
        with mx.name.NameManager():
            cell = eval(make, {"rnn": mx.rnn})
            image = len(shape) == 4
            layout = arguments.get("layout", "NTC")
            place = layout.find("T")
            whole = (*shape[:place], 3, *shape[place:])
            if image:
                inputs = [mx.sym.var(f"x{step}") for step in range(3)]
                known = {f"x{step}": shape for step in range(3)}
            else:
                inputs, known = mx.sym.var("data"), {"data": whole}
            begin = None
            if image:
                # Given, since the batch of a first state follows from that of a convolution's
                # result only in MXNet.
                begin = [mx.sym.var(f"state{place}") for place in range(len(cell.state_info))]
                known.update({f"state{place}": (2, *cell.state_shape[0][1:]) for place in range(len(begin))})
            outputs, states = cell.unroll(3, inputs, begin, **arguments)
            flat = [one for state in states for one in (state if isinstance(state, list) else [state])]
            symbol = mx.sym.Group([*(outputs if isinstance(outputs, list) else [outputs]), *flat])
        shapes, _, _ = symbol.infer_shape(**known)
        names = symbol.list_arguments()
        values = dict(zip(names, map(mx.nd.array, filled(shapes)), strict=True))
        results = symbol.bind(mx.cpu(), values).forward()
        found.append(
            {
                "make": make,
                "known": known,
                "arguments": arguments,
                "names": names,
                "shapes": shapes,
                "outputs": symbol.list_outputs(),
                "nodes": [node["name"] for node in json.loads(symbol.tojson())["nodes"]],
                "inits": {n: a["__init__"] for n, a in symbol.attr_dict().items() if "__init__" in a},
                "values": [np.round(one.asnumpy(), 6).ravel().tolist() for one in results],
            }
        )
    return found


def packed() -> list:
    """The one array of a fused cell, and its layout in single cells."""
    found = []
    for mode, layers, both in (("lstm", 2, True), ("gru", 1, False), ("rnn_tanh", 3, False)):
        cell = mx.rnn.FusedRNNCell(2, layers, mode, bidirectional=both)
        gates, sides = len(cell._gate_names), 1 + both
        size = sides * gates * 2 * (3 + 2 + 2) + (layers - 1) * sides * gates * 2 * (2 * sides + 2 + 2)
        parts = cell.unpack_weights({f"{mode}_parameters": mx.nd.arange(size)})
        shown = {name: listed(part.asnumpy()) for name, part in parts.items()}
        found.append({"mode": mode, "layers": layers, "both": both, "size": size, "parts": shown})
    return found


for function in (cells, packed, metrics, schedules, drawings, vocabularies, initializers, named_values):
    path = HERE / f"{function.__name__}.json"
    path.write_text(json.dumps(function(), separators=(",", ":")) + "\n")
    print(path, path.stat().st_size)
