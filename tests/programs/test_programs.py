"""Programs that surround models end as they did under MXNet 1.9.1: see the folder ``programs``."""

from __future__ import annotations

import json

import pytest

import programs
from test_blocks_recorded import agree

RECORDED = json.loads(programs.RECORDED.read_text())


def test_every_program_was_recorded() -> None:
    assert set(RECORDED) == set(programs.PROGRAMS)


# Programs use what MXNet warns of, too.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(mx, name: str) -> None:
    agree(programs.run(mx, name), RECORDED[name], rtol=2e-4, atol=2e-5, where=name)


def test_estimators_say_what_they_do_not_do(mx) -> None:
    contrib, gluon = mx.gluon.contrib.estimator, mx.gluon
    net = gluon.nn.Dense(2, in_units=3)
    loss = gluon.loss.L2Loss()
    estimator = contrib.Estimator(net, loss)
    assert net.weight.data().shape == (2, 3), "a network without parameters is initialised"
    assert [metric.get()[0] for metric in estimator.val_metrics] == ["validation l2loss"]
    with pytest.raises(mx.base.TrainingNotSupportedError, match=r"Estimator.fit"):
        estimator.fit(None, epochs=1)
    with pytest.raises(ValueError, match="DataLoader"):
        estimator.evaluate([1])
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset([1.0]), batch_size=1)
    with pytest.raises(ValueError, match="outside of the known"):
        estimator.evaluate(loader, event_handlers=contrib.MetricHandler(mx.metric.MSE()))
    with pytest.raises(ValueError, match="EventHandler"):
        estimator.evaluate(loader, event_handlers=[print])
    for wrong in ({"loss": net}, {"context": "cpu"}, {"batch_processor": 3}, {"trainer": 3}, {"train_metrics": [3]}):
        with pytest.raises(ValueError, match=r"must|refer"):
            contrib.Estimator(**{"net": net, "loss": loss, **wrong})
    for name in ("CheckpointHandler", "EarlyStoppingHandler", "StoppingHandler", "GradientUpdateHandler"):
        assert isinstance(getattr(contrib, name), type)
    with pytest.raises(ValueError, match="monitor"):
        contrib.EarlyStoppingHandler(3)
