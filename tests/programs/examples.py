"""Programs after MXNet's own examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gluon_cases import numbers

from ._base import MODELS, Batch, checkpoint, evaluation, program, rounded


@program
def predict_example(mx, folder: Path) -> list:
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("module_mlp"), 5)
    mod = mx.mod.Module(symbol=sym, context=mx.cpu(), label_names=None)
    mod.bind(for_training=False, data_shapes=[("data", (1, 64))], label_shapes=mod._label_shapes)
    mod.set_params(arg_params, aux_params, allow_missing=True)
    found = []
    for row in evaluation("module_mlp", 3)[0].reshape(3, 1, 64):
        mod.forward(Batch([mx.nd.array(row)]))
        prob = np.squeeze(mod.get_outputs()[0].asnumpy())
        order = np.argsort(prob)[::-1]
        found.append([int(order[0]), [float(prob[order[0]])]])
    return found


@program
def feature_extraction_example(mx, folder: Path) -> list:
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("digits_cnn"), 0)
    layers = sym.get_internals()
    name = [one for one in layers.list_outputs() if "flatten" in one][-1]
    fe_sym = layers[name]
    fe_mod = mx.mod.Module(symbol=fe_sym, context=mx.cpu(), label_names=None)
    fe_mod.bind(for_training=False, data_shapes=[("data", (1, 1, 8, 8))])
    fe_mod.set_params(arg_params, aux_params, allow_missing=True, allow_extra=True)
    fe_mod.forward(Batch([mx.nd.array(evaluation("digits_cnn", 1)[0])]))
    return [name, rounded(fe_mod.get_outputs()[0])]


@program
def score_example(mx, folder: Path) -> list:
    data, label = evaluation("module_mlp", 50)
    batches = mx.io.NDArrayIter(data.reshape(50, -1), label, batch_size=8)
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("module_mlp"), 5)
    mod = mx.mod.Module(symbol=sym, context=[mx.cpu(0)])
    mod.bind(for_training=False, data_shapes=batches.provide_data, label_shapes=batches.provide_label)
    mod.set_params(arg_params, aux_params)
    metrics = [mx.metric.create("acc"), mx.metric.create("top_k_accuracy", top_k=3), mx.metric.create("ce")]
    for batch in batches:
        mod.forward(batch, is_train=False)
        for metric in metrics:
            mod.update_metric(metric, batch.label)
    again = mod.score(batches, ["acc", "mse"], num_batch=2)
    return [[m.get()[0], [m.get()[1]]] for m in metrics] + [[name, [value]] for name, value in again]


@program
def feed_forward_of_the_first_years(mx, folder: Path) -> list:
    data, label = evaluation("legacy_mlp", 10)
    model = mx.model.FeedForward.load(checkpoint("legacy_mlp"), 5, ctx=mx.cpu(), numpy_batch_size=4)
    prob = model.predict(data.reshape(10, -1))
    batches = mx.io.NDArrayIter(data.reshape(10, -1), label, batch_size=5)
    prob2, kept, labels = model.predict(batches, return_data=True)
    score = model.score(batches, eval_metric="acc")
    model.save(str(folder / "again"), 7)
    again = mx.model.FeedForward.load(str(folder / "again"), 7).predict(data.reshape(10, -1))
    return [
        [prob.ravel().tolist(), list(prob.shape)],
        [bool(np.allclose(prob, prob2, atol=1e-6)), bool(np.allclose(prob, again, atol=1e-6)), kept.shape[0]],
        labels.tolist(),
        [float(score)],
    ]


@program
def module_predict_over_padded_batches(mx, folder: Path) -> list:
    mod = mx.mod.Module.load(checkpoint("digits_cnn"), 0, label_names=None)
    batches = mx.io.NDArrayIter({"data": evaluation("digits_cnn", 7)[0]}, batch_size=3, last_batch_handle="pad")
    mod.bind(data_shapes=batches.provide_data, for_training=False)
    whole = mod.predict(batches)
    parts = mod.predict(batches, merge_batches=False)
    counted = [(number, out[0].shape[0], batch.pad) for out, number, batch in mod.iter_predict(batches)]
    return [rounded(whole), [part[0].shape[0] for part in parts], [list(row) for row in counted]]


@program
def several_inputs_in_a_module(mx, folder: Path) -> list:
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("wide_deep"), 0)
    with np.load(MODELS / "wide_deep" / "golden.npz") as saved:
        inputs = {name.split(".in.")[1]: saved[name] for name in saved if name.startswith("b3.in.")}
    names = [name for name in sym.list_inputs() if name in inputs]
    mod = mx.mod.Module(sym, data_names=names, label_names=None)
    mod.bind([(name, inputs[name].shape) for name in names], for_training=False)
    mod.set_params(arg_params, aux_params)
    batches = mx.io.NDArrayIter(inputs, batch_size=3)
    return [names, rounded(mod.predict(batches, always_output_list=True))]


@program
def executors_by_hand(mx, folder: Path) -> list:
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("digits_cnn"), 0)
    data = evaluation("digits_cnn", 4)[0]
    executor = sym.simple_bind(ctx=mx.cpu(), data=(4, 1, 8, 8), grad_req="null")
    executor.copy_params_from(arg_params, aux_params)
    first = rounded(executor.forward(is_train=False, data=mx.nd.array(data))[0])
    executor.arg_dict["data"][:] = data[::-1]
    executor.forward()
    second = rounded(executor.outputs[0])
    smaller = executor.reshape(data=(2, 1, 8, 8))
    smaller.arg_dict["data"][:] = data[:2]
    third = rounded(smaller.forward()[0])
    return [first, second, third, sorted(executor.output_dict), len(executor.arg_arrays), len(executor.aux_arrays)]


@program
def buckets_of_sentences(mx, folder: Path) -> list:
    """A language model that is unrolled for every length, scored by perplexity."""
    sentences = [[1, 4, 2, 3], [2, 2], [3, 1, 4], [4, 3, 2, 1, 1], [1, 1, 2], [2, 4], [3, 3, 3, 3, 3], [2, 1, 2, 1]]
    batches = mx.rnn.BucketSentenceIter(sentences, 2, buckets=[3, 5], invalid_label=0)
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(num_hidden=6, prefix="lstm_"))

    def sym_gen(length: int):
        data, label = mx.sym.Variable("data"), mx.sym.Variable("softmax_label")
        embed = mx.sym.Embedding(data=data, input_dim=5, output_dim=4, name="embed")
        stack.reset()
        outputs, _ = stack.unroll(length, inputs=embed, merge_outputs=True)
        pred = mx.sym.FullyConnected(mx.sym.Reshape(outputs, shape=(-1, 6)), num_hidden=5, name="pred")
        flat = mx.sym.Reshape(label, shape=(-1,))
        return mx.sym.SoftmaxOutput(data=pred, label=flat, name="softmax"), ("data",), ("softmax_label",)

    model = mx.mod.BucketingModule(sym_gen=sym_gen, default_bucket_key=5, context=mx.cpu())
    model.bind(data_shapes=batches.provide_data, label_shapes=batches.provide_label, for_training=False)
    model.init_params(mx.init.Zero())
    args, aux = model.get_params()
    args = {name: mx.nd.array(numbers(name, value.shape)) for name, value in args.items()}
    model.set_params(args, aux)
    # Which sentence comes when is drawn; the score of all of them is not.
    score = model.score(batches, mx.metric.Perplexity(0))
    return [sorted(args), [[name, [value]] for name, value in score]]
