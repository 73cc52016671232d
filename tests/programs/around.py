"""Programs with contexts, loaders, estimators, monitors, profiles, summaries and metrics."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np

from gluon_cases import numbers

from ._base import Batch, checkpoint, evaluation, program, rounded, softmaxed
from .blocks import small_net


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
