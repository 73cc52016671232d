"""Objects of each class that programs of MXNet hold, and what can be assigned to them. It runs
under MXNet 1.9.1, which records what it takes, and under mxrt.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np


def _module(mx: Any, **options: Any) -> Any:
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    made = mx.mod.Module(net, label_names=None, **options)
    made.bind([("data", (2, 3))], for_training=False)
    made.init_params(mx.init.One())
    made.forward(mx.io.DataBatch([mx.nd.ones((2, 3))]))
    return made


def _buckets(mx: Any) -> Any:
    made = mx.mod.BucketingModule(lambda key: (_net(mx), ["data"], None), 3)
    made.bind([("data", (2, 3))], for_training=False)
    made.init_params(mx.init.One())
    return made


def _chain(mx: Any) -> Any:
    made = mx.mod.SequentialModule()
    made.add(mx.mod.Module(_net(mx), label_names=None))
    made.bind([("data", (2, 3))], for_training=False)
    made.init_params(mx.init.One())
    return made


def _net(mx: Any) -> Any:
    return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")


def _executor(mx: Any) -> Any:
    made = _net(mx).simple_bind(mx.cpu(), grad_req="null", data=(2, 3))
    made.forward(is_train=False)
    return made


def _block(mx: Any, make: Callable[[Any], Any], shape: tuple[int, ...] = (2, 3)) -> Any:
    block = make(mx.gluon)
    block.initialize()
    if hasattr(block, "hybridize"):
        block.hybridize()
    block(mx.nd.ones(shape))
    return block


def _symbol_block(mx: Any) -> Any:
    block = mx.gluon.SymbolBlock(_net(mx), mx.sym.var("data"))
    block.initialize()
    block(mx.nd.ones((2, 3)))
    return block


def _parameter(mx: Any) -> Any:
    made = mx.gluon.Parameter("w", shape=(2, 3))
    made.initialize()
    return made


def _params(mx: Any) -> Any:
    made = mx.gluon.ParameterDict("net_")
    made.get("w", shape=(2, 3))
    made.initialize()
    return made


def _pairs(mx: Any) -> Any:
    return mx.gluon.data.ArrayDataset(np.arange(12).reshape(6, 2), np.arange(6))


def _metric(mx: Any, name: str, **options: Any) -> Any:
    made = mx.metric.create(name, **options)
    made.update([mx.nd.array([0, 1])], [mx.nd.array([[0.3, 0.7], [0.4, 0.6]])])
    return made


def _monitor(mx: Any) -> Any:
    made = mx.mon.Monitor(1)
    made.install(_executor(mx))
    return made


def _pixels(mx: Any) -> Any:
    return mx.nd.zeros((8, 8, 3), dtype="uint8")


def _iterator(mx: Any) -> Any:
    return mx.io.NDArrayIter(np.arange(8.0).reshape(4, 2), np.arange(4), batch_size=2)


def _rows(mx: Any) -> Any:
    with open("rows.csv", "w") as file:
        file.write("1,2\n3,4\n5,6\n7,8\n")
    return mx.io.CSVIter(data_csv="rows.csv", data_shape=(2,), batch_size=2)


def _record(mx: Any) -> Any:
    file = mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "w")
    file.write_idx(0, b"bytes")
    file.close()
    return mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "r")


def _plain_record(mx: Any) -> Any:
    _record(mx).close()
    return mx.recordio.MXRecordIO("some.rec", "r")


def _vocabulary(mx: Any) -> Any:
    from collections import Counter

    return mx.contrib.text.vocab.Vocabulary(Counter(["a", "b", "a"]))


def _embedding(mx: Any) -> Any:
    with open("vectors.txt", "w") as file:
        file.write("a 1 2\nb 3 4\n")
    return mx.contrib.text.embedding.CustomEmbedding("vectors.txt")


def _estimator(mx: Any) -> Any:
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    from importlib import import_module

    return import_module(f"{mx.__name__}.gluon.contrib.estimator").Estimator(net, mx.gluon.loss.L2Loss())


def _cached_op(mx: Any) -> Any:
    return mx.ndarray.CachedOp(mx.sym.var("x") + 1)


def _cell(mx: Any, name: str, *args: Any, **options: Any) -> Any:
    return getattr(mx.rnn, name)(*args, **options)


def _classes(module: str, **arguments: tuple[Any, ...]) -> dict[str, Callable[[Any], Any]]:
    """Makers of classes of one module, by their arguments."""

    def maker(name: str, given: tuple[Any, ...]) -> Callable[[Any], Any]:
        return lambda mx: attrgetter(f"{module}.{name}")(mx)(*given)

    return {f"{module}.{name}": maker(name, given) for name, given in arguments.items()}


# What a class is called, and how one of its objects is made.
MAKERS: dict[str, Callable[[Any], Any]] = {
    "nd.NDArray": lambda mx: mx.nd.ones((2, 3)),
    "sym.Symbol": _net,
    "Context": lambda mx: mx.cpu(),
    "AttrScope": lambda mx: mx.AttrScope(ctx_group="a"),
    "name.NameManager": lambda mx: mx.name.NameManager(),
    "name.Prefix": lambda mx: mx.name.Prefix("a_"),
    "Executor": _executor,
    "mod.Module": _module,
    "mod.Module of two contexts": lambda mx: _module(mx, context=[mx.cpu(0), mx.cpu(1)]),
    "mod.Module._exec_group": lambda mx: _module(mx)._exec_group,
    "mod.Module._exec_group.execs": lambda mx: _module(mx)._exec_group.execs[0],
    "mod.BucketingModule": _buckets,
    "mod.SequentialModule": _chain,
    "model.FeedForward": lambda mx: mx.model.FeedForward(_net(mx)),
    "gluon.Block": lambda mx: mx.gluon.Block(),
    "gluon.HybridBlock": lambda mx: mx.gluon.HybridBlock(),
    "gluon.SymbolBlock": _symbol_block,
    "gluon.Parameter": _parameter,
    "gluon.Constant": lambda mx: mx.gluon.Constant("c", [1.0]),
    "gluon.ParameterDict": _params,
    "gluon.nn.Dense": lambda mx: _block(mx, lambda gluon: gluon.nn.Dense(2)),
    "gluon.nn.HybridSequential": lambda mx: mx.gluon.nn.HybridSequential(),
    "gluon.nn.Sequential": lambda mx: mx.gluon.nn.Sequential(),
    "gluon.nn.Conv2D": lambda mx: _block(mx, lambda gluon: gluon.nn.Conv2D(2, 3), (1, 3, 8, 8)),
    "gluon.nn.Conv2DTranspose": lambda mx: _block(mx, lambda gluon: gluon.nn.Conv2DTranspose(2, 3), (1, 3, 8, 8)),
    "gluon.nn.MaxPool2D": lambda mx: mx.gluon.nn.MaxPool2D(),
    "gluon.nn.BatchNorm": lambda mx: _block(mx, lambda gluon: gluon.nn.BatchNorm()),
    "gluon.nn.LayerNorm": lambda mx: _block(mx, lambda gluon: gluon.nn.LayerNorm()),
    "gluon.nn.Dropout": lambda mx: mx.gluon.nn.Dropout(0.5),
    "gluon.nn.Activation": lambda mx: mx.gluon.nn.Activation("relu"),
    "gluon.nn.LeakyReLU": lambda mx: mx.gluon.nn.LeakyReLU(0.1),
    "gluon.nn.PReLU": lambda mx: mx.gluon.nn.PReLU(),
    "gluon.nn.Embedding": lambda mx: mx.gluon.nn.Embedding(3, 2),
    "gluon.nn.Flatten": lambda mx: mx.gluon.nn.Flatten(),
    "gluon.nn.Lambda": lambda mx: mx.gluon.nn.Lambda("tanh"),
    "gluon.nn.HybridLambda": lambda mx: mx.gluon.nn.HybridLambda("tanh"),
    "gluon.rnn.LSTM": lambda mx: mx.gluon.rnn.LSTM(4, input_size=3),
    "gluon.rnn.LSTMCell": lambda mx: mx.gluon.rnn.LSTMCell(4, input_size=3),
    "gluon.rnn.GRUCell": lambda mx: mx.gluon.rnn.GRUCell(4, input_size=3),
    "gluon.rnn.RNNCell": lambda mx: mx.gluon.rnn.RNNCell(4, input_size=3),
    "gluon.rnn.SequentialRNNCell": lambda mx: mx.gluon.rnn.SequentialRNNCell(),
    "gluon.rnn.BidirectionalCell": lambda mx: mx.gluon.rnn.BidirectionalCell(
        mx.gluon.rnn.LSTMCell(4), mx.gluon.rnn.LSTMCell(4)
    ),
    "gluon.rnn.ZoneoutCell": lambda mx: mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.RNNCell(4)),
    "gluon.rnn.ResidualCell": lambda mx: mx.gluon.rnn.ResidualCell(mx.gluon.rnn.RNNCell(4)),
    "gluon.rnn.DropoutCell": lambda mx: mx.gluon.rnn.DropoutCell(0.5),
    "gluon.loss.L2Loss": lambda mx: mx.gluon.loss.L2Loss(),
    "gluon.loss.SoftmaxCrossEntropyLoss": lambda mx: mx.gluon.loss.SoftmaxCrossEntropyLoss(),
    "gluon.loss.CTCLoss": lambda mx: mx.gluon.loss.CTCLoss(),
    "gluon.model_zoo.vision.AlexNet": lambda mx: mx.gluon.model_zoo.vision.alexnet(),
    "gluon.Trainer": lambda mx: mx.gluon.Trainer(_params(mx), "sgd", {"learning_rate": 0.1}),
    "gluon.data.ArrayDataset": _pairs,
    "gluon.data.SimpleDataset": lambda mx: mx.gluon.data.SimpleDataset([1, 2, 3]),
    "gluon.data.DataLoader": lambda mx: mx.gluon.data.DataLoader(_pairs(mx), batch_size=2),
    "gluon.data.BatchSampler": lambda mx: mx.gluon.data.BatchSampler(mx.gluon.data.SequentialSampler(4), 2),
    "gluon.data.SequentialSampler": lambda mx: mx.gluon.data.SequentialSampler(4),
    "gluon.data.RandomSampler": lambda mx: mx.gluon.data.RandomSampler(4),
    "gluon.data.vision.transforms.Resize": lambda mx: mx.gluon.data.vision.transforms.Resize(4),
    "gluon.data.vision.transforms.Normalize": lambda mx: mx.gluon.data.vision.transforms.Normalize(0.5, 0.5),
    "gluon.data.vision.transforms.CenterCrop": lambda mx: mx.gluon.data.vision.transforms.CenterCrop(4),
    "gluon.data.vision.transforms.Compose": lambda mx: mx.gluon.data.vision.transforms.Compose([]),
    "gluon.data.vision.transforms.ToTensor": lambda mx: mx.gluon.data.vision.transforms.ToTensor(),
    "gluon.data.vision.transforms.Cast": lambda mx: mx.gluon.data.vision.transforms.Cast(),
    "gluon.contrib.data.IntervalSampler": lambda mx: mx.gluon.contrib.data.IntervalSampler(4, 2),
    "gluon.contrib.rnn.VariationalDropoutCell": lambda mx: mx.gluon.contrib.rnn.VariationalDropoutCell(
        mx.gluon.rnn.RNNCell(4)
    ),
    "gluon.contrib.rnn.LSTMPCell": lambda mx: mx.gluon.contrib.rnn.LSTMPCell(4, 2),
    "gluon.contrib.nn.PixelShuffle2D": lambda mx: mx.gluon.contrib.nn.PixelShuffle2D(2),
    "gluon.contrib.nn.HybridConcurrent": lambda mx: mx.gluon.contrib.nn.HybridConcurrent(axis=1),
    "io.NDArrayIter": _iterator,
    "io.CSVIter": _rows,
    "io.ResizeIter": lambda mx: mx.io.ResizeIter(_iterator(mx), 3),
    "io.PrefetchingIter": lambda mx: mx.io.PrefetchingIter(_iterator(mx)),
    "io.DataIter": lambda mx: mx.io.DataIter(2),
    "io.DataBatch": lambda mx: mx.io.DataBatch([mx.nd.ones((2, 3))]),
    "io.DataDesc": lambda mx: mx.io.DataDesc("data", (2, 3)),
    "rnn.BucketSentenceIter": lambda mx: mx.rnn.BucketSentenceIter([[1, 2], [2, 1], [1]], 1, [2]),
    "rnn.RNNParams": lambda mx: mx.rnn.RNNParams("rnn_"),
    "rnn.LSTMCell": lambda mx: _cell(mx, "LSTMCell", 4),
    "rnn.GRUCell": lambda mx: _cell(mx, "GRUCell", 4),
    "rnn.RNNCell": lambda mx: _cell(mx, "RNNCell", 4),
    "rnn.FusedRNNCell": lambda mx: _cell(mx, "FusedRNNCell", 4),
    "rnn.SequentialRNNCell": lambda mx: _cell(mx, "SequentialRNNCell"),
    "rnn.BidirectionalCell": lambda mx: _cell(
        mx, "BidirectionalCell", _cell(mx, "LSTMCell", 4), _cell(mx, "LSTMCell", 4)
    ),
    "rnn.DropoutCell": lambda mx: _cell(mx, "DropoutCell", 0.5),
    "rnn.ZoneoutCell": lambda mx: _cell(mx, "ZoneoutCell", _cell(mx, "RNNCell", 4)),
    "rnn.ResidualCell": lambda mx: _cell(mx, "ResidualCell", _cell(mx, "RNNCell", 4)),
    "recordio.MXIndexedRecordIO": _record,
    "recordio.MXRecordIO": _plain_record,
    "metric.Accuracy": lambda mx: _metric(mx, "acc"),
    "metric.TopKAccuracy": lambda mx: _metric(mx, "top_k_accuracy", top_k=2),
    "metric.F1": lambda mx: mx.metric.F1(),
    "metric.MCC": lambda mx: mx.metric.MCC(),
    "metric.PCC": lambda mx: mx.metric.PCC(),
    "metric.Perplexity": lambda mx: mx.metric.Perplexity(None),
    "metric.MSE": lambda mx: mx.metric.MSE(),
    "metric.CrossEntropy": lambda mx: _metric(mx, "ce"),
    "metric.PearsonCorrelation": lambda mx: mx.metric.PearsonCorrelation(),
    "metric.CompositeEvalMetric": lambda mx: mx.metric.CompositeEvalMetric(["acc", "mse"]),
    "metric.CustomMetric": lambda mx: mx.metric.CustomMetric(lambda label, pred: 1.0),
    "Monitor": _monitor,
    "callback.Speedometer": lambda mx: mx.callback.Speedometer(2),
    "callback.ProgressBar": lambda mx: mx.callback.ProgressBar(2),
    "init.Xavier": lambda mx: mx.init.Xavier(),
    "init.Uniform": lambda mx: mx.init.Uniform(),
    "init.Normal": lambda mx: mx.init.Normal(),
    "init.Constant": lambda mx: mx.init.Constant(1),
    "init.InitDesc": lambda mx: mx.init.InitDesc("w"),
    "init.Mixed": lambda mx: mx.init.Mixed([".*"], [mx.init.One()]),
    "init.Load": lambda mx: mx.init.Load({}),
    "lr_scheduler.FactorScheduler": lambda mx: mx.lr_scheduler.FactorScheduler(2),
    "lr_scheduler.MultiFactorScheduler": lambda mx: mx.lr_scheduler.MultiFactorScheduler([2, 4]),
    "lr_scheduler.PolyScheduler": lambda mx: mx.lr_scheduler.PolyScheduler(4),
    "lr_scheduler.CosineScheduler": lambda mx: mx.lr_scheduler.CosineScheduler(4),
    "optimizer.SGD": lambda mx: mx.optimizer.SGD(),
    "optimizer.Adam": lambda mx: mx.optimizer.Adam(),
    "image.ResizeAug": lambda mx: mx.image.ResizeAug(4),
    "image.CenterCropAug": lambda mx: mx.image.CenterCropAug((4, 4)),
    "image.RandomCropAug": lambda mx: mx.image.RandomCropAug((4, 4)),
    "image.RandomSizedCropAug": lambda mx: mx.image.RandomSizedCropAug((4, 4), (0.5, 1), (1, 1)),
    "image.BrightnessJitterAug": lambda mx: mx.image.BrightnessJitterAug(0.1),
    "image.HueJitterAug": lambda mx: mx.image.HueJitterAug(0.1),
    "image.ColorNormalizeAug": lambda mx: mx.image.ColorNormalizeAug(mx.nd.zeros(3), mx.nd.ones(3)),
    "image.HorizontalFlipAug": lambda mx: mx.image.HorizontalFlipAug(0.5),
    "image.CastAug": lambda mx: mx.image.CastAug(),
    "image.DetHorizontalFlipAug": lambda mx: mx.image.DetHorizontalFlipAug(0.5),
    "image.DetRandomCropAug": lambda mx: mx.image.DetRandomCropAug(),
    "image.DetRandomPadAug": lambda mx: mx.image.DetRandomPadAug(),
    "operator.CustomOp": lambda mx: mx.operator.CustomOp(),
    "operator.CustomOpProp": lambda mx: mx.operator.CustomOpProp(),
    "kvstore.KVStore": lambda mx: mx.kv.create("local"),
    "profiler.Domain": lambda mx: mx.profiler.Domain("d"),
    "profiler.Task": lambda mx: mx.profiler.Task(mx.profiler.Domain("d"), "t"),
    "profiler.Frame": lambda mx: mx.profiler.Frame(mx.profiler.Domain("d"), "f"),
    "profiler.Event": lambda mx: mx.profiler.Event("e"),
    "profiler.Counter": lambda mx: mx.profiler.Counter(mx.profiler.Domain("d"), "c"),
    "profiler.Marker": lambda mx: mx.profiler.Marker(mx.profiler.Domain("d"), "m"),
    "runtime.Features": lambda mx: mx.runtime.Features(),
    "contrib.text.vocab.Vocabulary": _vocabulary,
    "contrib.text.embedding.CustomEmbedding": _embedding,
    "util.np_shape": lambda mx: mx.util.np_shape(False),
    "autograd.pause": lambda mx: mx.autograd.pause(),
    "log.formatter": lambda mx: mx.log._Formatter(),
    "nd.sparse.CSRNDArray": lambda mx: mx.nd.ones((2, 3)).tostype("csr"),
    "nd.sparse.RowSparseNDArray": lambda mx: mx.nd.ones((2, 3)).tostype("row_sparse"),
    "np.ndarray": lambda mx: mx.np.ones((2, 3)),
    "sym.numpy.Symbol": lambda mx: mx.sym.var("x").as_np_ndarray(),
    "sym.Group": lambda mx: mx.sym.Group([mx.sym.var("a"), mx.sym.var("b")]),
    "nd.CachedOp": _cached_op,
    "mod.BaseModule": lambda mx: mx.mod.BaseModule(),
    "mod.PythonModule": lambda mx: mx.mod.PythonModule(["data"], None, ["out"]),
    "mod.PythonLossModule": lambda mx: mx.mod.PythonLossModule(),
    "model.BatchEndParam": lambda mx: mx.model.BatchEndParam(0, 0, None, None),
    "gluon.block._BlockScope": lambda mx: mx.gluon.nn.Dense(1)._scope,
    "gluon.utils.HookHandle": lambda mx: mx.gluon.nn.Dense(1).register_forward_hook(print),
    "gluon.contrib.estimator.Estimator": _estimator,
    "gluon.data.FilterSampler": lambda mx: mx.gluon.data.FilterSampler(bool, mx.gluon.data.SimpleDataset([1])),
    "gluon.data.SimpleDataset.transform": lambda mx: mx.gluon.data.SimpleDataset([1, 2]).transform(abs),
    "gluon.data.SimpleDataset.filter": lambda mx: mx.gluon.data.SimpleDataset([1, 2]).filter(bool),
    "gluon.data.SimpleDataset.shard": lambda mx: mx.gluon.data.SimpleDataset([1, 2]).shard(2, 0),
    "contrib.io.DataLoaderIter": lambda mx: mx.contrib.io.DataLoaderIter(
        mx.gluon.data.DataLoader(_pairs(mx), batch_size=2)
    ),
    "Updater": lambda mx: mx.optimizer.get_updater(mx.optimizer.SGD()),
    "lr_scheduler.LRScheduler": lambda mx: mx.lr_scheduler.LRScheduler(),
    "callback.LogValidationMetricsCallback": lambda mx: mx.callback.LogValidationMetricsCallback(),
    "autograd.record": lambda mx: mx.autograd.record(),
    "engine.bulk": lambda mx: mx.engine.bulk(3),
    "rnn.ModifierCell": lambda mx: _cell(mx, "ModifierCell", _cell(mx, "RNNCell", 4)),
    "image.DetBorrowAug": lambda mx: mx.image.DetBorrowAug(mx.image.CastAug()),
    "image.DetRandomSelectAug": lambda mx: mx.image.DetRandomSelectAug([mx.image.DetHorizontalFlipAug(0.5)], 0.1),
    "init.FusedRNN": lambda mx: mx.init.FusedRNN(mx.init.One(), 4, 1, "lstm"),
    **_classes("init", Initializer=(), Zero=(), One=(), Orthogonal=(), MSRAPrelu=(), Bilinear=(), LSTMBias=()),
    **_classes("metric", RMSE=(), MAE=(), NegativeLogLikelihood=(), Loss=(), Torch=(), Caffe=(), EvalMetric=("x",)),
    **_classes("gluon.loss", L1Loss=(), SigmoidBinaryCrossEntropyLoss=(), KLDivLoss=(), HuberLoss=(), HingeLoss=()),
    **_classes("gluon.loss", LogisticLoss=(), TripletLoss=(), PoissonNLLLoss=(), CosineEmbeddingLoss=(), SDMLLoss=()),
    **_classes("gluon.nn", Conv1D=(2, 3), Conv3D=(2, 3), Conv3DTranspose=(2, 3), AvgPool2D=(), GlobalAvgPool2D=()),
    **_classes("gluon.nn", InstanceNorm=(), GroupNorm=(), ELU=(), SELU=(), GELU=(), Swish=(), ReflectionPad2D=(1,)),
    **_classes("gluon.rnn", GRU=(4,), RNN=(4,), HybridSequentialRNNCell=(), RecurrentCell=(), HybridRecurrentCell=()),
    **_classes("gluon.contrib.nn", Concurrent=(), Identity=(), SparseEmbedding=(3, 2), SyncBatchNorm=()),
    **_classes("gluon.contrib.cnn", DeformableConvolution=(2, 3), ModulatedDeformableConvolution=(2, 3)),
    **_classes("gluon.contrib.rnn", Conv1DRNNCell=((3, 8), 4, 3, 3), Conv2DLSTMCell=((3, 8, 8), 4, 3, 3)),
    **_classes("gluon.data.vision.transforms", RandomResizedCrop=(4,), CropResize=(0, 0, 2, 2), Rotate=(10,)),
    **_classes("gluon.data.vision.transforms", RandomFlipLeftRight=(), RandomHue=(0.1,), RandomLighting=(0.1,)),
    **_classes("gluon.data.vision.transforms", RandomColorJitter=(0.1,), RandomRotation=((1, 2),)),
    **_classes("image", ForceResizeAug=((4, 4),), RandomOrderAug=([],), SequentialAug=([],), RandomGrayAug=(0.1,)),
    **_classes("image", ContrastJitterAug=(0.1,), SaturationJitterAug=(0.1,), ColorJitterAug=(0.1, 0.1, 0.1)),
}


def settable(thing: Any) -> list[str]:
    """The attributes of an object, functions of its class aside, that can be assigned to
    themselves.
    """
    found = []
    for name in dir(thing):
        if name.startswith("__"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = getattr(thing, name)
                if not inspect.isroutine(value) or name in getattr(thing, "__dict__", {}):
                    setattr(thing, name, value)
                    found.append(name)
            except Exception:  # an attribute that cannot be read, or not be assigned
                continue
    return found


def methods(thing: Any) -> list[str]:
    """The public functions that an object has."""
    found = []
    for name in dir(thing):
        if not name.startswith("_"):
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                if inspect.isroutine(getattr(thing, name)):
                    found.append(name)
    return found


@contextlib.contextmanager
def inside(folder: Any) -> Any:
    """Makers write files where they are."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
