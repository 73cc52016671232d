"""Mixed precision: graphs are those that MXNet 1.9.1 makes, and compute what float32 computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from amp_cases import SHAPES, cases, converted, graph, values
from support import recorded

CASES = dict(cases())


@pytest.mark.parametrize("name", list(CASES))
def test_converted_graphs_are_those_of_mxnet(mx, name: str) -> None:
    assert converted(mx, CASES[name]) == recorded("amp")[name]


@pytest.mark.parametrize("cast", [False, True])
@pytest.mark.parametrize("name", ["layers", "residual", "mixed"])
def test_converted_models_compute_what_they_computed(mx, name: str, cast: bool) -> None:
    amp, symbol = mx.contrib.amp, graph(mx, name)
    args, aux = values(mx, name)
    made, half, states = amp.convert_model(graph(mx, name), dict(args), dict(aux), cast_optional_params=cast)
    data = {"data": mx.nd.array(np.random.RandomState(1).uniform(-1, 1, SHAPES[name]["data"]))}
    if name == "layers":
        data["softmax_label"] = mx.nd.zeros((2,))
    want = symbol.bind(mx.cpu(), {**args, **data}, aux_states=aux).forward()
    found = made.bind(mx.cpu(), {**half, **data}, aux_states=states).forward()
    assert {value.dtype for value in half.values()} >= ({np.float16} if cast else {np.float32})
    for one, other in zip(found, want, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=2e-2, atol=2e-2)
        assert not np.array_equal(one.asnumpy(), other.asnumpy())


def net_of(mx):
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, in_channels=2), nn.BatchNorm(in_channels=4), nn.Dense(3, in_units=4))
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.parametrize(
    ("options", "half"),
    [
        ({}, []),
        ({"cast_optional_params": True}, ["conv0_weight", "conv0_bias", "dense0_weight", "dense0_bias"]),
        ({"cast_optional_params": True, "excluded_sym_names": ["net_conv0_fwd"]}, ["dense0_weight", "dense0_bias"]),
    ],
)
def test_a_block_is_converted(mx, options: dict, half: list[str]) -> None:
    net = net_of(mx)
    with pytest.raises(RuntimeError, match="hybridize"):
        mx.contrib.amp.convert_hybrid_block(net, ctx=mx.cpu())
    net.hybridize()
    x = mx.nd.array(np.random.RandomState(1).uniform(-1, 1, (2, 2, 3, 3)))
    want = net(x).asnumpy()
    made = mx.contrib.amp.convert_hybrid_block(net, ctx=mx.cpu(), **options)
    types = {name: parameter.data().dtype for name, parameter in made.collect_params().items()}
    assert sorted(name for name, dtype in types.items() if dtype == np.float16) == sorted(f"net_{n}" for n in half)
    found = made(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.asnumpy(), want, rtol=2e-2, atol=2e-2)


def test_buckets_are_converted(mx) -> None:
    def make(length: int):
        mean = mx.sym.mean(mx.sym.var("data"), axis=1, keepdims=True)
        return mx.sym.FullyConnected(mean, num_hidden=2, name="dense"), ("data",), ()

    module = mx.mod.BucketingModule(make, 4)
    with pytest.raises(AssertionError, match="bind"):
        mx.contrib.amp.amp.convert_bucketing_module(module)
    module.bind([("data", (1, 4))], for_training=False)
    module.set_params({"dense_weight": mx.nd.array([[1], [-2]]), "dense_bias": mx.nd.array([0.1, 0.2])}, {})
    made = mx.contrib.amp.amp.convert_bucketing_module(module, cast_optional_params=True)
    made.bind([("data", (1, 4))], for_training=False)
    assert made.get_params()[0]["dense_weight"].dtype == np.float16
    made.forward(mx.io.DataBatch([mx.nd.ones((1, 4))], bucket_key=4, provide_data=[("data", (1, 4))]))
    np.testing.assert_allclose(made.get_outputs()[0].asnumpy(), [[1.1, -1.8]], rtol=1e-3)
    assert "amp_cast" in made.symbol.tojson(remove_amp_cast=False)


def test_a_converted_model_survives_its_files(mx, tmp_path: Path) -> None:
    made, args, aux = mx.contrib.amp.convert_model(graph(mx, "layers"), *values(mx, "layers"))
    prefix = str(tmp_path / "half")
    mx.model.save_checkpoint(prefix, 0, made, args, aux, remove_amp_cast=False)
    again = mx.mod.Module.load(prefix, 0)
    again.bind([("data", SHAPES["layers"]["data"])], [("softmax_label", (2,))], for_training=False)
    x = mx.nd.ones(SHAPES["layers"]["data"])
    again.forward(mx.io.DataBatch([x]))
    given = {**args, "data": x, "softmax_label": mx.nd.zeros((2,))}
    want = made.bind(mx.cpu(), given, aux_states=aux).forward()[0].asnumpy()
    assert np.array_equal(again.get_outputs()[0].asnumpy(), want)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"target_dtype_ops": ["nope"]}, "nope"),
        ({"target_dtype_ops": ["exp"], "fp32_ops": ["exp"]}, "two or more lists"),
        ({"target_dtype_ops": ["Activation"]}, "Activation"),
        ({"fp32_ops": "exp"}, "list of strs"),
        ({"excluded_sym_names": "conv"}, "list of strs"),
        ({"conditional_fp32_ops": ["exp"]}, "str, str, list"),
        ({"target_dtype": "float64"}, "float16"),
    ],
)
def test_lists_that_do_not_fit_are_refused(mx, options: dict, named: str) -> None:
    with pytest.raises(AssertionError, match=named):
        mx.contrib.amp.convert_symbol(graph(mx, "layers"), **options)


def test_bfloat16_says_what_works(mx) -> None:
    with pytest.raises(NotImplementedError, match="precision='bf16'"):
        mx.contrib.amp.convert_symbol(graph(mx, "layers"), "bfloat16")
    for dtype in (np.float16, "bfloat16"):
        assert "Convolution" in mx.contrib.amp.list_lp16_ops(dtype)
