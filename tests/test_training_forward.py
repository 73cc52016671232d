"""``is_train=True`` and ``bind(for_training=True)``: programs that only predict use them. What a
forward computes is computed; gradients are refused.
"""

from __future__ import annotations

import numpy as np
import pytest

# What MXNet 1.9.1 gives for BatchNorm in training, of numpy.arange(24) ** 1.5 as (2, 3, 2, 2) with
# gamma [1, 2, 3], beta 1 and eps 1e-3.
NORMALISED = [
    *(-0.0753, -0.0339, 0.0417, 0.1397, -1.2981, -1.0905, -0.8610, -0.6115, -2.5190, -2.1525, -1.7650, -1.3577),
    *(1.6443, 1.8637, 2.0917, 2.3281, 2.3570, 2.7547, 3.1642, 3.5853, 3.0811, 3.6503, 4.2332, 4.8296),
]


def normalised(mx):
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn", fix_gamma=False, eps=1e-3)
    data = mx.nd.array(np.arange(24).reshape(2, 3, 2, 2) ** 1.5)
    args = {"bn_gamma": mx.nd.array([1, 2, 3]), "bn_beta": mx.nd.ones(3)}
    states = {"bn_moving_mean": mx.nd.zeros(3), "bn_moving_var": mx.nd.ones(3)}
    return net, data, args, states


def test_batch_norm_takes_the_statistics_of_the_batch(mx) -> None:
    net, data, args, states = normalised(mx)
    held = net.bind(mx.cpu(), {"data": data, **args}, aux_states=states)
    assert np.allclose(held.forward(is_train=True)[0].asnumpy().ravel(), NORMALISED, atol=2e-4)
    assert states["bn_moving_mean"].asnumpy().tolist() == [0, 0, 0]
    plain = held.forward(is_train=False)[0].asnumpy().ravel()
    assert np.allclose(plain[:4], [1, 1.9995, 3.8270, 6.1935], atol=1e-3)


def test_dropout_drops_while_training_and_not_otherwise(mx) -> None:
    net = mx.sym.Dropout(mx.sym.var("data"), p=0.5)
    held = net.bind(mx.cpu(), {"data": mx.nd.ones((1000,))})
    dropped = held.forward(is_train=True)[0].asnumpy()
    assert set(dropped.tolist()) == {0, 2} and 300 < (dropped == 0).sum() < 700
    assert not np.array_equal(held.forward(is_train=True)[0].asnumpy(), dropped)
    assert held.forward()[0].asnumpy().tolist() == [1] * 1000


def test_a_module_that_is_bound_for_training_predicts(mx) -> None:
    net = mx.sym.Dropout(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), p=0.5)
    module = mx.mod.Module(net, label_names=None)
    module.bind([("data", (100, 2))], for_training=True)
    module.init_params(mx.init.One())
    batch = mx.io.DataBatch([mx.nd.ones((100, 2))])
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() == 2).all()
    module.forward(batch)
    assert set(module.get_outputs()[0].asnumpy().ravel().tolist()) == {0, 4}
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() == 2).all()
    assert (module.predict(mx.io.NDArrayIter(np.ones((100, 2)), batch_size=100)).asnumpy() == 2).all()
    for refused in (module.backward, module.update):
        with pytest.raises(mx.base.TrainingNotSupportedError):
            refused()


@pytest.mark.parametrize("make", ["BucketingModule", "SequentialModule"])
def test_other_modules_pass_it_on(mx, make: str) -> None:
    net = mx.sym.Dropout(mx.sym.var("data"), p=0.5)
    if make == "BucketingModule":
        module = mx.mod.BucketingModule(lambda key: (net, ["data"], None), 1)
    else:
        module = mx.mod.SequentialModule().add(mx.mod.Module(net, label_names=None))
    shapes = [("data", (100, 2))]
    module.bind(shapes, for_training=True)
    module.init_params()
    batch = mx.io.DataBatch([mx.nd.ones((100, 2))], bucket_key=1, provide_data=shapes)
    module.forward(batch)
    assert set(module.get_outputs()[0].asnumpy().ravel().tolist()) == {0, 2}
    module.forward(batch, is_train=False)
    assert (module.get_outputs()[0].asnumpy() == 1).all()


def test_operators_whose_training_is_not_computed_are_named(mx) -> None:
    net = mx.sym.LeakyReLU(mx.sym.var("data"), act_type="rrelu", name="leak")
    held = net.bind(mx.cpu(), {"data": mx.nd.ones((2,))})
    with pytest.raises(mx.base.TrainingNotSupportedError, match=r"LeakyReLU 'leak'"):
        held.forward(is_train=True)
    assert held.forward()[0].shape == (2,)
