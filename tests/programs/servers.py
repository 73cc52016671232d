"""Programs that answer requests."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ._base import MODELS, Batch, checkpoint, evaluation, program, rounded, softmaxed


@program
def hosting_container_with_a_module(mx, folder: Path) -> dict:
    """A model directory with a signature; requests and answers are JSON, batches fill up."""
    signature = [{"name": "data", "shape": [4, 64]}]
    symbol, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("module_mlp"), 5)
    model = mx.mod.Module(symbol, context=mx.cpu(), label_names=None)
    shapes = [(one["name"], tuple(one["shape"])) for one in signature]
    model.bind(for_training=False, data_shapes=shapes)
    model.set_params(arg_params, aux_params, allow_missing=True)
    request = json.dumps(evaluation("module_mlp", 6)[0].reshape(6, -1).tolist())
    array = mx.nd.array(json.loads(request))
    length = array.shape[0]
    model_batch = model.data_shapes[0].shape[0]
    if length < model_batch:
        array = mx.nd.concat(array, mx.nd.zeros((model_batch - length, *array.shape[1:])), dim=0)
    batches = mx.io.NDArrayIter(array, batch_size=model_batch)
    found = model.predict(batches)[:length]
    return {"answer": rounded(found), "classes": np.argmax(found.asnumpy(), axis=1).tolist()}


@program
def hosting_container_with_a_block(mx, folder: Path) -> dict:
    files = [str(path) for path in sorted((MODELS / "digits_cnn").glob("digits_cnn-*"))]
    params = next(path for path in files if path.endswith(".params"))
    symbol = next(path for path in files if path.endswith("symbol.json"))
    net = mx.gluon.nn.SymbolBlock.imports(symbol, ["data"], params, ctx=mx.cpu())
    body = json.dumps(evaluation("digits_cnn", 3)[0].tolist())
    answer = net(mx.nd.array(json.loads(body)).as_in_context(mx.cpu()))
    return {"answer": rounded(answer), "json": len(json.loads(json.dumps(answer.asnumpy().tolist())))}


@program
def model_server_with_labels(mx, folder: Path) -> list:
    """Top labels with probabilities from a module, rebound when a batch has another size."""
    names = [f"n{number:02d} digit {number}" for number in range(10)]
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("digits_cnn"), 0)
    data_names = ["data"]
    mod = mx.mod.Module(symbol=sym, context=mx.cpu(), data_names=data_names, label_names=None)
    mod.bind(for_training=False, data_shapes=[("data", (1, 1, 8, 8))])
    mod.set_params(arg_params, aux_params, allow_missing=True, allow_extra=True)
    answers = []
    for count in (1, 3):
        batch = evaluation("digits_cnn", count)[0]
        if count != mod.data_shapes[0].shape[0]:
            mod.reshape([("data", batch.shape)])
        mod.forward(Batch([mx.nd.array(batch)]))
        for row in mod.get_outputs()[0].asnumpy():
            probability = softmaxed(row)
            for place in np.argsort(probability)[::-1][:3]:
                answers.append([names[place], [float(probability[place])]])
    return answers


@program
def server_that_reads_parameters_by_hand(mx, folder: Path) -> list:
    """The prefixes ``arg:`` and ``aux:`` are taken off by the program."""
    saved = mx.nd.load(checkpoint("digits_cnn") + "-0000.params")
    arg_params, aux_params = {}, {}
    for key, value in saved.items():
        kind, name = key.split(":", 1)
        (arg_params if kind == "arg" else aux_params)[name] = value
    sym = mx.sym.load(checkpoint("digits_cnn") + "-symbol.json")
    mod = mx.mod.Module(sym, label_names=[], context=mx.cpu())
    mod.bind([("data", (2, 1, 8, 8))], for_training=False)
    mod.init_params(arg_params=arg_params, aux_params=aux_params)
    mod.forward(mx.io.DataBatch([mx.nd.array(evaluation("digits_cnn", 2)[0])]), is_train=False)
    return [sorted(aux_params), rounded(mod.get_outputs())]
