"""Programs that surround models, written after the flow of public ones: each is run with either
module, and says what it computed.

``python tests/programs.py``, with a Python that has MXNet 1.9.1, writes
``tests/recorded/programs.json`` anew. A program takes the module and an empty folder.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gluon_cases import fill, numbers, plain

RECORDED = Path(__file__).parent / "recorded" / "programs.json"
MODELS = Path(__file__).parent / "models"

Batch = namedtuple("Batch", ["data"])

PROGRAMS: dict[str, Callable] = {}


def program(run: Callable) -> Callable:
    PROGRAMS[run.__name__] = run
    return run


def checkpoint(name: str) -> str:
    return str(MODELS / name / name)


def evaluation(name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and labels of a trained model."""
    with np.load(MODELS / name / "eval.npz") as saved:
        return saved["in.data"][:count], saved["label"][:count].astype("float32")


def rounded(values) -> list:
    return plain(values)


def softmaxed(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


# ---- servers -------------------------------------------------------------------------------------


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
    """Top labels with probabilities, from a module that is rebound when a batch has another size."""
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


# ---- examples of MXNet ---------------------------------------------------------------------------


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


# ---- blocks --------------------------------------------------------------------------------------


def small_net(mx, prefix: str = "net_"):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten())
        net.add(nn.Dense(8, activation="tanh"), nn.Dropout(0.5), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 2, 6, 6)))
    fill(mx, net)
    return net


@program
def export_and_load(mx, folder: Path) -> list:
    net, x = small_net(mx), mx.nd.array(numbers("x", (2, 2, 6, 6)))
    net.hybridize(static_alloc=True, static_shape=True)
    found = [rounded(net(x))]
    net.export(str(folder / "net"), epoch=3)
    block = mx.gluon.SymbolBlock.imports(str(folder / "net-symbol.json"), ["data"], str(folder / "net-0003.params"))
    found.append(rounded(block(x)))
    mod = mx.mod.Module.load(str(folder / "net"), 3, label_names=None)
    mod.bind([("data", x.shape)], for_training=False)
    found.append(rounded(mod.predict(x.asnumpy())))
    return [found, sorted(os.listdir(folder)), sorted(mod.get_params()[1])]


@program
def zoo_network_as_in_the_tutorials(mx, folder: Path) -> list:
    """Normalise an image, run a network of the zoo, print the five best classes."""
    net = mx.gluon.model_zoo.vision.get_model("mobilenet0.25", classes=12, prefix="mobile_")
    net.initialize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    fill(mx, net)
    net.hybridize()
    image = mx.nd.array(numbers("image", (40, 48, 3), 0, 255))
    image = mx.image.center_crop(image, (32, 32))[0]
    mean, std = mx.nd.array([0.485, 0.456, 0.406]), mx.nd.array([0.229, 0.224, 0.225])
    image = mx.image.color_normalize(image.astype("float32") / 255, mean=mean, std=std)
    prob = net(image.transpose((2, 0, 1)).expand_dims(axis=0)).softmax()
    best = prob.topk(k=5)[0].asnumpy().astype(int).tolist()
    return [best, [float(prob[0, place].asscalar()) for place in best]]


@program
def segmentation_demo(mx, folder: Path) -> list:
    """A fully convolutional network with an auxiliary head, evaluated through ``demo``."""
    gluon = mx.gluon

    class Head(gluon.nn.HybridBlock):
        def __init__(self, classes: int, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.block = gluon.nn.HybridSequential()
                with self.block.name_scope():
                    self.block.add(gluon.nn.Conv2D(4, 3, padding=1, use_bias=False), gluon.nn.BatchNorm())
                    self.block.add(gluon.nn.Activation("relu"), gluon.nn.Dropout(0.1), gluon.nn.Conv2D(classes, 1))

        def hybrid_forward(self, F, x):
            return self.block(x)

    class Net(gluon.nn.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            self._up = {"height": 12, "width": 10}
            with self.name_scope():
                self.base = gluon.nn.Conv2D(6, 3, strides=2, padding=1, activation="relu")
                self.head, self.auxlayer = Head(5), Head(5)

        def hybrid_forward(self, F, x):
            features = self.base(x)
            outputs = [F.contrib.BilinearResize2D(head(features), **self._up) for head in (self.head, self.auxlayer)]
            return tuple(outputs)

        def demo(self, x):
            return self(x)[0]

    net = Net(prefix="fcn_")
    net.initialize()
    image = mx.nd.array(numbers("image", (1, 3, 12, 10)))
    net(image)
    fill(mx, net)
    output = net.demo(image)
    net.hybridize()
    hybrid = net.demo(image)
    predict = mx.nd.squeeze(mx.nd.argmax(output, 1)).asnumpy()
    return [predict.astype(int).tolist(), rounded(hybrid), len(net(image))]


@program
def detection_demo(mx, folder: Path) -> list:
    """Boxes above a threshold, from a network with its detections inside."""
    net = mx.gluon.SymbolBlock.imports(checkpoint("ssd_digits") + "-symbol.json", ["data"])
    net.load_parameters(checkpoint("ssd_digits") + "-0000.params", ctx=mx.cpu(), ignore_extra=True)
    with np.load(MODELS / "ssd_digits" / "golden.npz") as saved:
        outputs = net(mx.nd.array(saved["b1.in.data"]))
    rows = (outputs[0] if isinstance(outputs, (list, tuple)) else outputs)[0].asnumpy()
    kept = rows[(rows[:, 0] >= 0) & (rows[:, 1] > 0.5)]
    return [[int(row[0]), row[1:].tolist()] for row in kept[np.argsort(-kept[:, 1])]]


@program
def face_embedding(mx, folder: Path) -> list:
    """Embeddings of unit length, their distances, and the same with the image mirrored."""
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("digits_cnn"), 0)
    all_layers = sym.get_internals()
    sym = all_layers[[name for name in all_layers.list_outputs() if "flatten" in name][-1]]
    model = mx.mod.Module(symbol=sym, context=mx.cpu(), label_names=None)
    model.bind(data_shapes=[("data", (1, 1, 8, 8))], for_training=False)
    model.set_params(arg_params, aux_params, allow_missing=True, allow_extra=True)

    def embedding(image: np.ndarray) -> np.ndarray:
        total = 0
        for mirrored in (image, image[:, :, ::-1]):
            batch = mx.io.DataBatch(data=(mx.nd.array(mirrored[np.newaxis]),))
            model.forward(batch, is_train=False)
            total = total + model.get_outputs()[0].asnumpy()
        return mx.nd.L2Normalization(mx.nd.array(total)).asnumpy().ravel()

    faces = [embedding(image) for image in evaluation("digits_cnn", 4)[0]]
    return [[float(np.sum((a - b) ** 2)) for b in faces] for a in faces[:2]] + [faces[0].tolist()]


@program
def fine_tuned_head(mx, folder: Path) -> list:
    """The features of one network under a new output layer; saved, and loaded into a third."""
    vision = mx.gluon.model_zoo.vision
    pretrained = vision.mobilenet_v2_0_25(prefix="base_", classes=4)
    pretrained.initialize()
    pretrained(mx.nd.zeros((1, 3, 32, 32)))
    fill(mx, pretrained)
    net = vision.mobilenet_v2_0_25(classes=2, prefix="head_")
    net.features = pretrained.features
    net.output.initialize(mx.init.Xavier(), ctx=mx.cpu())
    net(mx.nd.zeros((1, 3, 32, 32)))
    fill(mx, net.output)
    x = mx.nd.array(numbers("x", (1, 3, 32, 32)))
    net.hybridize()
    found = rounded(net(x))
    net.save_parameters(str(folder / "head.params"))
    again = vision.mobilenet_v2_0_25(classes=2)
    again.load_parameters(str(folder / "head.params"), ctx=mx.cpu())
    return [found, rounded(again(x)), list(mx.nd.load(str(folder / "head.params")))[-2:]]


# ---- language ------------------------------------------------------------------------------------


def encoder_classifier(mx):
    """A small BERT: token, segment and position embeddings, masked attention, pooler, classifier."""
    gluon, nn = mx.gluon, mx.gluon.nn

    class Layer(gluon.HybridBlock):
        def __init__(self, units: int, heads: int, **options) -> None:
            super().__init__(**options)
            self._units, self._heads = units, heads
            with self.name_scope():
                self.qkv = nn.Dense(3 * units, flatten=False)
                self.proj, self.norm1 = nn.Dense(units, flatten=False), nn.LayerNorm(epsilon=1e-12)
                self.ffn1, self.ffn2 = nn.Dense(2 * units, flatten=False), nn.Dense(units, flatten=False)
                self.act, self.norm2, self.drop = nn.GELU(), nn.LayerNorm(epsilon=1e-12), nn.Dropout(0.1)

        def split(self, F, x):
            x = F.transpose(F.reshape(x, shape=(0, 0, self._heads, -1)), axes=(0, 2, 1, 3))
            return F.reshape(x, shape=(-1, 0, 0), reverse=True)

        def hybrid_forward(self, F, x, mask):
            query, key, value = (self.split(F, part) for part in F.split(self.qkv(x), num_outputs=3, axis=-1))
            query = F.contrib.div_sqrt_dim(query)
            scores = F.batch_dot(query, key, transpose_b=True)
            mask = F.broadcast_axis(F.expand_dims(mask, axis=1), axis=1, size=self._heads)
            mask = F.reshape(mask, shape=(-1, 0, 0), reverse=True)
            scores = F.where(mask, scores, -1e18 * F.ones_like(scores))
            weights = F.broadcast_mul(F.softmax(scores, axis=-1), mask)
            context = F.reshape(F.batch_dot(weights, value), shape=(-1, self._heads, 0, 0), reverse=True)
            context = F.reshape(F.transpose(context, axes=(0, 2, 1, 3)), shape=(0, 0, -1))
            x = self.norm1(x + self.drop(self.proj(context)))
            return self.norm2(x + self.drop(self.ffn2(self.act(self.ffn1(x)))))

    class Model(gluon.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.word, self.segment = nn.Embedding(20, 8), nn.Embedding(2, 8)
                self.position = self.params.get("position_weight", shape=(6, 8))
                self.norm = nn.LayerNorm(epsilon=1e-12)
                self.layers = nn.HybridSequential()
                with self.layers.name_scope():
                    for _ in range(2):
                        self.layers.add(Layer(8, 2))
                self.pooler = nn.Dense(8, activation="tanh", flatten=False)
                self.classifier = nn.HybridSequential()
                with self.classifier.name_scope():
                    self.classifier.add(nn.Dropout(0.1), nn.Dense(3))

        def hybrid_forward(self, F, tokens, types, valid_length, position):
            x = self.word(tokens) + self.segment(types)
            x = self.norm(F.broadcast_add(x, F.expand_dims(position, axis=0)))
            steps = F.contrib.arange_like(tokens, axis=1)
            steps = F.broadcast_like(F.expand_dims(steps, axis=0), tokens, lhs_axes=(0,), rhs_axes=(0,))
            mask = F.broadcast_lesser(steps, F.reshape(valid_length, shape=(-1, 1)))
            mask = F.broadcast_mul(
                F.expand_dims(mask, axis=1),
                F.broadcast_like(
                    F.expand_dims(mask, axis=2) * 0 + 1, F.expand_dims(mask, axis=1), lhs_axes=(2,), rhs_axes=(2,)
                ),
            )
            for layer in self.layers._children.values():
                x = layer(x, mask)
            pooled = self.pooler(F.reshape(F.slice_axis(x, axis=1, begin=0, end=1), shape=(0, -1)))
            return self.classifier(pooled)

    return Model(prefix="bert_")


@program
def sentence_classification(mx, folder: Path) -> list:
    model = encoder_classifier(mx)
    model.initialize(mx.init.Normal(0.02), ctx=mx.cpu())
    tokens = mx.nd.array([[2, 5, 7, 3, 0, 0], [2, 9, 9, 4, 11, 3], [2, 3, 0, 0, 0, 0]])
    types = mx.nd.array([[0, 0, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    lengths, labels = mx.nd.array([4, 6, 2], dtype="int32"), mx.nd.array([0, 2, 1])
    model(tokens, types, lengths.astype("float32"))
    fill(mx, model)
    metric, loss = mx.metric.Accuracy(), mx.gluon.loss.SoftmaxCELoss()
    found = []
    for hybrid in (False, True):
        if hybrid:
            model.hybridize(static_alloc=True)
        out = model(tokens.as_in_context(mx.cpu()), types, lengths.astype("float32"))
        metric.update([labels], [out])
        found.append([rounded(out), [float(loss(out, labels).mean().asscalar())]])
    model.save_parameters(str(folder / "bert.params"))
    return [found, [metric.get()[1]], sorted(model.collect_params(".*classifier"))]


@program
def greedy_translation(mx, folder: Path) -> list:
    """An encoder and a decoder of cells; the decoder is called a step at a time."""
    gluon, rnn = mx.gluon, mx.gluon.rnn
    embed = gluon.nn.Embedding(9, 5, prefix="embed_")
    encoder = rnn.BidirectionalCell(rnn.GRUCell(4, prefix="l_"), rnn.GRUCell(4, prefix="r_"))
    decoder = rnn.HybridSequentialRNNCell(prefix="dec_")
    with decoder.name_scope():
        decoder.add(rnn.LSTMCell(8))
        decoder.add(rnn.ResidualCell(rnn.LSTMCell(8)))
    out = gluon.nn.Dense(9, flatten=False, prefix="out_")
    for block in (embed, encoder, decoder, out):
        block.initialize()
    source = mx.nd.array([[1, 2, 3, 4], [4, 4, 0, 0]])

    def translate() -> list:
        states, _ = encoder.unroll(4, embed(source), layout="NTC", merge_outputs=True, valid_length=mx.nd.array([4, 2]))
        context = mx.nd.mean(states, axis=1)
        state = decoder.begin_state(batch_size=2, func=mx.nd.zeros)
        token, words, scores = mx.nd.array([0, 0]), [], []
        for _ in range(5):
            step = mx.nd.concat(embed(token), context, dim=1)
            hidden, state = decoder(step, state)
            logits = out(hidden)
            token = logits.argmax(axis=1)
            scores.append(rounded(logits.log_softmax().max(axis=1)))
            words.append(token.asnumpy().astype(int).tolist())
        return [words, scores]

    translate()
    for block in (embed, encoder, decoder, out):
        fill(mx, block)
    found = translate()
    decoder.hybridize()
    out.hybridize()
    return [found, translate()]


@program
def beam_search_with_modules(mx, folder: Path) -> list:
    """States go from one call of a module to the next, and are taken in the order of the beam."""
    beam, vocabulary, hidden = 3, 7, 6
    cell = mx.rnn.GRUCell(hidden, prefix="dec_")
    previous, state = mx.sym.Variable("previous"), mx.sym.Variable("state")
    embed = mx.sym.Embedding(previous, input_dim=vocabulary, output_dim=4, name="embed")
    output, states = cell(embed, [state])
    logits = mx.sym.FullyConnected(output, num_hidden=vocabulary, name="logits")
    step = mx.sym.Group([mx.sym.log_softmax(logits), states[0]])
    module = mx.mod.Module(step, data_names=("previous", "state"), label_names=None, context=mx.cpu())
    module.bind([("previous", (beam,)), ("state", (beam, hidden))], for_training=False)
    module.init_params(mx.init.Zero())
    args, aux = module.get_params()
    module.set_params({name: mx.nd.array(2 * numbers(name, value.shape)) for name, value in args.items()}, aux)
    tokens, held = mx.nd.zeros((beam,)), mx.nd.array(numbers("state", (1, hidden))).broadcast_to((beam, hidden))
    totals, sequences = mx.nd.array([0, -1e9, -1e9]), [[] for _ in range(beam)]
    for _ in range(4):
        module.forward(mx.io.DataBatch([tokens, held]), is_train=False)
        scores, held = module.get_outputs()
        together = mx.nd.broadcast_add(scores, totals.expand_dims(1)).reshape((-1,))
        totals = together.topk(k=beam, ret_typ="value")
        best = together.topk(k=beam).astype("int32")
        rows = mx.nd.floor(best.astype("float32") / vocabulary)
        tokens = best.astype("float32") - rows * vocabulary
        held = mx.nd.take(held, rows)
        order, words = rows.asnumpy().astype(int), tokens.asnumpy().astype(int)
        sequences = [[*sequences[row], int(word)] for row, word in zip(order, words, strict=True)]
    return [sequences, rounded(totals)]


@program
def language_model_evaluation(mx, folder: Path) -> list:
    """Fused LSTM over chunks of a text, the state handed on; perplexity at the end."""
    gluon = mx.gluon

    class Model(gluon.Block):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.drop = gluon.nn.Dropout(0.2)
                self.encoder = gluon.nn.Embedding(11, 6)
                self.rnn = gluon.rnn.LSTM(6, 2, dropout=0.2, input_size=6)
                self.decoder = gluon.nn.Dense(11, in_units=6, params=self.encoder.params)

        def forward(self, inputs, hidden):
            output, hidden = self.rnn(self.drop(self.encoder(inputs)), hidden)
            return self.decoder(self.drop(output).reshape((-1, 6))), hidden

    model = Model(prefix="lm_")
    model.initialize()
    text = np.arange(24).reshape(12, 2) * 7 % 11
    loss, total, count = gluon.loss.SoftmaxCrossEntropyLoss(), 0.0, 0
    hidden = model.rnn.begin_state(func=mx.nd.zeros, batch_size=2, ctx=mx.cpu())
    model(mx.nd.array(text[:3]), hidden)
    fill(mx, model)
    for at in range(0, 9, 3):
        data, target = mx.nd.array(text[at : at + 3]), mx.nd.array(text[at + 1 : at + 4]).reshape((-1,))
        output, hidden = model(data, [state.detach() for state in hidden])
        losses = loss(output, target)
        total += mx.nd.sum(losses).asscalar()
        count += losses.size
    shared = model.decoder.weight is model.encoder.weight
    return [[float(np.exp(total / count))], rounded(hidden), shared, sorted(model.collect_params())]


# ---- around models -------------------------------------------------------------------------------


@program
def evaluation_over_several_contexts(mx, folder: Path) -> list:
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = small_net(mx)
    net.collect_params().reset_ctx(contexts)
    metric = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), mx.metric.TopKAccuracy(2), mx.metric.CrossEntropy()])
    data, label = numbers("data", (10, 2, 6, 6)), np.arange(10) % 3
    for at in (0, 5):
        parts = mx.gluon.utils.split_and_load(data[at : at + 5], ctx_list=contexts, batch_axis=0, even_split=False)
        labels = mx.gluon.utils.split_and_load(label[at : at + 5], ctx_list=contexts, even_split=False)
        outputs = [mx.nd.softmax(net(part)) for part in parts]
        metric.update(labels, outputs)
    names, values = metric.get()
    return [[name, [float(value)]] for name, value in zip(names, values, strict=True)]


@program
def module_over_several_contexts(mx, folder: Path) -> list:
    data, label = evaluation("module_mlp", 11)
    batches = mx.io.NDArrayIter(data.reshape(11, -1), label, batch_size=4)
    mod = mx.mod.Module.load(checkpoint("module_mlp"), 5, context=[mx.cpu(0), mx.cpu(1)])
    mod.bind(data_shapes=batches.provide_data, label_shapes=batches.provide_label, for_training=False)
    score = mod.score(batches, ["acc", "ce"])
    parts = mod.get_outputs(merge_multi_context=False)
    return [rounded(mod.predict(batches)), [[n, [v]] for n, v in score], [[p.shape[0] for p in row] for row in parts]]


@program
def loader_and_metric(mx, folder: Path) -> list:
    """A data set, a transformation of its samples, a loader with workers, and a metric."""
    gluon = mx.gluon
    data, label = evaluation("digits_cnn", 23)
    dataset = gluon.data.ArrayDataset(mx.nd.array(data), label).transform_first(lambda image: image * 2 - image)
    loader = gluon.data.DataLoader(dataset, batch_size=8, last_batch="keep", num_workers=2, thread_pool=True)
    net = gluon.SymbolBlock.imports(
        checkpoint("digits_cnn") + "-symbol.json", ["data"], checkpoint("digits_cnn") + "-0000.params"
    )
    metric, sizes = mx.metric.CompositeEvalMetric([mx.metric.Accuracy(), mx.metric.TopKAccuracy(2)]), []
    for images, labels in loader:
        sizes.append(list(images.shape))
        metric.update([labels], [net(images.as_in_context(mx.cpu()))])
    names, values = metric.get()
    order = list(gluon.contrib.data.IntervalSampler(7, 3))
    return [sizes, [[name, [float(value)]] for name, value in zip(names, values, strict=True)], order]


@program
def estimator_evaluation(mx, folder: Path) -> list:
    """An estimator evaluates; its handlers are called in the order of their priorities."""
    gluon = mx.gluon
    contrib = gluon.contrib.estimator
    called = []

    class Handler(contrib.BatchBegin, contrib.BatchEnd, contrib.EpochEnd):
        def batch_begin(self, estimator, *args, **kwargs) -> None:
            called.append(["begin", list(kwargs["batch"][0].shape)])

        def batch_end(self, estimator, *args, **kwargs) -> None:
            called.append(["end", [[float(one.mean().asscalar())] for one in kwargs["loss"]]])

        def epoch_end(self, estimator, *args, **kwargs) -> None:
            called.append(["epoch", [metric.get()[0] for metric in estimator.val_metrics]])

    class Double(contrib.BatchProcessor):
        def evaluate_batch(self, estimator, val_batch, batch_axis=0):
            data, label, pred, loss = super().evaluate_batch(estimator, val_batch, batch_axis)
            return data, label, pred, [2 * one for one in loss]

    net, (data, label) = small_net(mx), (numbers("data", (10, 2, 6, 6)), (np.arange(10) % 3).astype("float32"))
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), batch_size=4)
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    results = []
    for options in ({}, {"batch_processor": Double()}, {"val_metrics": mx.metric.TopKAccuracy(2)}):
        loss = gluon.loss.SoftmaxCrossEntropyLoss(prefix="loss_")
        estimator = contrib.Estimator(net, loss, trainer=trainer, context=mx.cpu(), **options)
        shown = io.StringIO()
        for handler in estimator.logger.handlers:
            handler.setStream(shown)
        estimator.evaluate(loader, event_handlers=[Handler()])
        results.append([[name, [float(value)]] for name, value in (m.get() for m in estimator.val_metrics)])
        results.append([metric.get()[0] for metric in estimator.train_metrics])
        results.append([line.split(" Finished")[0] for line in shown.getvalue().splitlines()])
    return [results, called]


@program
def monitored_forward(mx, folder: Path) -> list:
    sym, arg_params, aux_params = mx.model.load_checkpoint(checkpoint("module_mlp"), 5)
    mod = mx.mod.Module(sym, label_names=None)
    mod.bind([("data", (2, 64))], for_training=False)
    mod.set_params(arg_params, aux_params, allow_missing=True)
    # MXNet joins the dense layers with others on some processors.
    monitor = mx.mon.Monitor(
        1, stat_func=lambda x: mx.nd.norm(x) / np.sqrt(x.size), pattern="(bn|tanh|relu|softmax).*output", sort=True
    )
    mod.install_monitor(monitor)
    monitor.tic()
    mod.forward(Batch([mx.nd.array(evaluation("module_mlp", 2)[0].reshape(2, -1))]))
    return [[name, [float(text.split()[0])]] for _, name, text in monitor.toc()]


@program
def profiled_forward(mx, folder: Path) -> list:
    """A file of events, and a table that names the operators; what it measured is not compared."""
    path = str(folder / "profile.json")
    mx.profiler.set_config(profile_all=True, aggregate_stats=True, filename=path)
    mx.profiler.set_state("run")
    task = mx.profiler.Task(mx.profiler.Domain("mine"), "step")
    task.start()
    mx.nd.dot(mx.nd.ones((3, 3)), mx.nd.ones((3, 3))).asnumpy()
    task.stop()
    mx.nd.waitall()
    mx.profiler.set_state("stop")
    table = mx.profiler.dumps()
    mx.profiler.dump()
    events = json.loads(Path(path).read_text())["traceEvents"]
    return ["dot" in table, "step" in table, len(events) > 0, any(event.get("name") == "dot" for event in events)]


@program
def summaries(mx, folder: Path) -> list:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        small_net(mx).summary(mx.nd.zeros((1, 2, 6, 6)))
        sym = mx.sym.load(checkpoint("module_mlp") + "-symbol.json")
        mx.viz.print_summary(sym, shape={"data": (1, 64)})
    return shown.getvalue().splitlines()


@program
def metrics_in_a_loop(mx, folder: Path) -> list:
    metrics = [mx.metric.create(name) for name in ("acc", "ce", "mse")]
    metrics.append(mx.metric.create(lambda label, pred: float((pred.argmax(axis=1) == label).sum())))
    rows = []
    for step in range(3):
        pred = mx.nd.array(softmaxed(numbers(f"pred {step}", (6, 4)) * 3))
        label = mx.nd.array(np.arange(6) * (step + 1) % 4)
        for metric in metrics[:2] + metrics[3:]:
            metric.update([label], [pred])
        metrics[2].update([mx.nd.one_hot(label, 4)], [pred])
        rows.append([[metric.get()[0], [float(metric.get()[1])]] for metric in metrics])
    return rows


def run(mx, name: str):
    """What a program says, as JSON has it."""
    with tempfile.TemporaryDirectory() as folder, mx.name.NameManager():
        return json.loads(json.dumps(PROGRAMS[name](mx, Path(folder))))


if __name__ == "__main__":
    import mxnet

    RECORDED.write_text(json.dumps({name: run(mxnet, name) for name in PROGRAMS}, indent=0) + "\n")
