"""Metrics: the values that MXNet 1.9.1 gives, and how they are made and put together."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

from support import recorded

CASES = recorded("metrics")


def array_of(entry: dict) -> np.ndarray:
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['metric']}-{c['arguments']}")
def test_the_value_is_the_one_of_mxnet(mx, case: dict) -> None:
    metric = mx.metric.create(case["metric"], **case["arguments"])
    name, value = metric.get()
    assert name == case["empty"]
    assert math.isnan(value)
    for number, batch in enumerate(case["batches"]):
        label, pred = array_of(batch["label"]), array_of(batch["pred"])
        metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
        np.testing.assert_allclose(metric.get()[1], batch["value"], rtol=2e-5, atol=1e-7)
        assert dict(metric.get_name_value()) == {name: metric.get()[1]}
        if number == 0:
            metric.reset_local()
    np.testing.assert_allclose(metric.get_global()[1], case["global"], rtol=2e-5, atol=1e-7)
    assert str(metric).startswith(case["text"])
    config = metric.get_config()
    if case["metric"] == "perplexity":  # MXNet's forgets its axis
        assert config.pop("axis") == -1
    assert config == case["config"]
    assert type(mx.metric.create(metric.get_config())) is type(metric)


def test_numpy_arrays_are_as_good(mx) -> None:
    ours, theirs = mx.metric.create("acc"), mx.metric.create("acc")
    label, pred = np.array([0, 1, 1]), np.array([[0.3, 0.7], [0, 1.0], [0.4, 0.6]])
    ours.update([label], [pred])
    theirs.update(mx.nd.array(label), mx.nd.array(pred))
    assert ours.get() == theirs.get() == ("accuracy", 2 / 3)


def test_a_list_makes_one_metric_of_several(mx) -> None:
    def largest(label, pred):
        return float(np.abs(label - pred).max())

    metric = mx.metric.create(["mae", largest, mx.metric.RMSE(name="root")])
    label, pred = mx.nd.array([1.0, 2.0, 3.0]), mx.nd.array([1.0, 2.5, 5.0])
    metric.update([label], [pred])
    assert metric.get()[0] == ["mae", "largest", "root"]
    np.testing.assert_allclose(metric.get()[1], [2.5 / 3, 2.0, math.sqrt(4.25 / 3)], rtol=1e-6)
    assert metric.get_metric(0).name == "mae"
    with pytest.raises(ValueError, match="out of range"):
        metric.get_metric(3)
    metric.reset()
    assert all(math.isnan(value) for value in metric.get()[1])


def test_a_function_may_return_a_sum_and_its_count(mx) -> None:
    metric = mx.metric.np(lambda label, pred: (float((label == pred).sum()), label.size), name="equal")
    metric.update([mx.nd.array([1, 2, 3, 4])], [mx.nd.array([1, 2, 0, 0])])
    metric.update([mx.nd.array([1, 2])], [mx.nd.array([1, 2])])
    assert metric.get() == ("equal", 4 / 6)
    assert mx.metric.create(lambda label, pred: 1.0).name == "custom(<lambda>)"
    with pytest.raises(NotImplementedError):
        metric.get_config()


def test_outputs_and_labels_are_chosen_by_name(mx) -> None:
    metric = mx.metric.Accuracy(output_names=["second"], label_names=["of_second"])
    labels = OrderedDict(of_first=mx.nd.array([0]), of_second=mx.nd.array([1]))
    preds = OrderedDict(first=mx.nd.array([[0.1, 0.9]]), second=mx.nd.array([[0.1, 0.9]]))
    metric.update_dict(labels, preds)
    assert metric.get() == ("accuracy", 1.0)
    mx.metric.CompositeEvalMetric([metric]).update_dict(labels, preds)
    assert metric.num_inst == 2


def test_a_program_adds_a_metric_of_its_own(mx) -> None:
    @mx.metric.register
    @mx.metric.alias("how_many")
    class Count(mx.metric.EvalMetric):
        def __init__(self, step=1):
            super().__init__("count", step=step)
            self.step = step

        def update(self, labels, preds):
            self.sum_metric += self.step
            self.num_inst = 1

    for made in (mx.metric.create("count", step=3), mx.metric.create("how_many", 3), mx.metric.create(Count(3))):
        made.update(None, None)
        made.update(None, None)
        assert made.get() == made.get_global() == ("count", 6)
    assert mx.metric.create('["count", {"step": 2}]').step == 2


def test_what_cannot_be_a_metric_is_refused(mx) -> None:
    with pytest.raises(AssertionError, match=r"nonsense is not registered.*accuracy"):
        mx.metric.create("nonsense")
    with pytest.raises(AssertionError, match="top_k"):
        mx.metric.TopKAccuracy(top_k=1)
    with pytest.raises(ValueError, match="Shape of labels 2 does not match shape of predictions 1"):
        mx.metric.MAE().update([mx.nd.zeros(1), mx.nd.zeros(1)], [mx.nd.zeros(1)])
    with pytest.raises(ValueError, match="binary"):
        mx.metric.F1().update(mx.nd.array([0, 1, 2]), mx.nd.zeros((3, 2)))


def test_text_of_a_metric_shows_plain_numbers(mx) -> None:
    metric = mx.metric.np(lambda label, pred: np.float64(0.5), name="half")
    metric.update([mx.nd.zeros(1)], [mx.nd.zeros(1)])
    assert str(metric) == "EvalMetric: {'half': 0.5}"


def test_f1_shows_what_it_counted(mx) -> None:
    labels, scores = mx.nd.array([0, 1, 1, 0, 1]), [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.55, 0.45], [0.1, 0.9]]
    metric = mx.metric.F1(average="micro")
    metric.update([labels], [mx.nd.array(scores)])
    counts = metric.metrics
    assert (counts.precision, counts.recall, counts.fscore) == (1, pytest.approx(2 / 3), pytest.approx(0.8))
    assert (counts.true_positives, counts.false_negatives, counts.true_negatives, counts.total_examples) == (2, 1, 2, 5)
    metric.reset_local()
    assert (counts.recall, counts.total_examples, counts.global_total_examples) == (0, 0, 5)
    assert counts.global_recall == pytest.approx(2 / 3)
    metric.reset()
    assert counts.global_total_examples == 0
    mean = mx.metric.F1()
    mean.update([labels], [mx.nd.array(scores)])
    assert (mean.metrics.fscore, mean.metrics.total_examples) == (0, 0)  # as in MXNet, of no batch


def test_a_metric_of_a_program_counts_binary_decisions(mx) -> None:
    class Recall(mx.metric.F1):
        def update(self, labels, preds):
            for label, pred in zip(labels, preds, strict=True):
                self.metrics.update_binary_stats(label, pred)
            self.sum_metric, self.num_inst = self.metrics.recall, 1

    metric = Recall(name="recall")
    metric.update([mx.nd.array([1, 1])], [mx.nd.array([[0.9, 0.1], [0.2, 0.8]])])
    assert metric.get() == ("recall", 0.5)
    counts = mx.metric._BinaryClassificationMetrics()
    counts.update_binary_stats(mx.nd.array([1, 0]), mx.nd.array([[0.1, 0.9], [0.2, 0.8]]))
    assert (counts.false_positives, counts.matthewscc(), counts.matthewscc(use_global=True)) == (1, 0, 0)


def test_the_root_of_the_mean_square_has_the_precision_of_the_arrays(mx) -> None:
    metric = mx.metric.RMSE()
    metric.update([mx.nd.array([1, 2, 3.3])], [mx.nd.array([1.5, 2.9, 4.7])])
    root = np.sqrt(np.mean((np.float32([1, 2, 3.3]) - np.float32([1.5, 2.9, 4.7])) ** 2.0))
    assert root.dtype == np.float32
    assert metric.get()[1] == float(root)


def test_counts_have_the_types_of_mxnet(mx) -> None:
    labels, scores = [mx.nd.array([1, 0])], [mx.nd.array([[0.1, 0.5], [0.9, 0.8]])]
    for metric in (mx.metric.MCC(), mx.metric.PCC(), mx.metric.Perplexity(0)):
        metric.update(labels, scores)
        assert type(metric.num_inst) is float, metric
        metric.reset_local()
        metric.update(labels, scores)
        assert type(metric.num_inst) is float, metric


def test_rows_without_a_label_do_not_correlate(mx) -> None:
    metric = mx.metric.PCC()
    metric.update([mx.nd.array([1, 0])], [mx.nd.array([[0.1, 0.5], [0.9, 0.8], [0.2, 0.1], [0.3, 0.1]])])
    assert metric.get() == ("pcc", 1.0)


def test_perplexity_wants_predictions_for_each_array_of_labels(mx) -> None:
    metric = mx.metric.Perplexity(ignore_label=None)
    label, pred = mx.nd.array([0]), mx.nd.array([[1.0, 0.0]])
    with pytest.raises(AssertionError):
        metric.update([label], [pred, pred])
    metric.update([label, label], [pred, pred])
    assert metric.get() == ("perplexity", 1.0)
