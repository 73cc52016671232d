"""Symbols from Python: names, composition, inference, running."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def fc(mx):
    return mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="fc")


def test_operators_get_the_names_mxnet_gives(mx) -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    with mx.name.NameManager():
        made = [
            x + y,
            x + 1,
            1 - x,
            x - 1,
            x / y,
            2 / x,
            x**2,
            -x,
            x == y,
            x > 1,
            x % 2,
            mx.sym.relu(x),
            mx.sym.relu(y),
        ]
    assert [s.name for s in made] == [
        "_plus0", "_plusscalar0", "_rminusscalar0", "_minusscalar0", "_div0", "_rdivscalar0", "_powerscalar0",
        "_mulscalar0", "_equal0", "_greater_scalar0", "_modscalar0", "relu0", "relu1",
    ]  # fmt: skip


def test_operators_compute_what_they_say(mx) -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    a, b = np.array([[1.0, 2, 3], [4, 5, 6]], "f4"), np.array([[6.0, 2, 4], [1, 5, 3]], "f4")
    for symbol, want in [
        (x + y * 2 - 1, a + b * 2 - 1),
        ((2 - x / y) ** 2, (2 - a / b) ** 2),
        (abs(-x) % 4, a % 4),
        (x >= 3, (a >= 3).astype("f4")),
    ]:
        given = {n: mx.nd.array(v) for n, v in (("x", a), ("y", b)) if n in symbol.list_arguments()}
        np.testing.assert_allclose(symbol.eval(**given)[0].asnumpy(), want, rtol=1e-5)


def test_prefixes_and_attributes_hold_inside_their_scope_only(mx) -> None:
    x = mx.sym.var("x")
    with mx.name.Prefix("net_"), mx.AttrScope(ctx_group="one"):
        inside = mx.sym.FullyConnected(x, num_hidden=1, name="fc")
    outside = mx.sym.FullyConnected(x, num_hidden=1, name="fc")
    assert inside.list_arguments() == ["x", "net_fc_weight", "net_fc_bias"]
    assert inside.attr("ctx_group") == "one"
    assert outside.list_arguments() == ["x", "fc_weight", "fc_bias"]
    assert outside.attr("ctx_group") is None


def test_names_are_counted_per_thread(mx) -> None:
    with mx.name.NameManager():
        mx.sym.relu(mx.sym.var("x"))
        names = []
        thread = threading.Thread(target=lambda: names.append(mx.name.current()))
        thread.start()
        thread.join()
        assert names[0] is not mx.name.current()


def test_inference_tells_what_is_unknown(mx, fc) -> None:
    assert fc.infer_shape(x=(2, 5)) == ([(2, 5), (3, 5), (3,)], [(2, 3)], [])
    assert fc.infer_shape_partial(x=(0, 5)) == ([(0, 5), (3, 5), (3,)], [(0, 3)], [])
    with pytest.warns(UserWarning, match="Cannot decide shape"):
        assert fc.infer_shape() == (None, None, None)
    assert fc.infer_type(x="float16")[1] == [np.float16]
    with pytest.warns(UserWarning, match="Cannot decide type"):
        assert fc.infer_type() == (None, None, None)
    x = mx.sym.var("x")
    for operator in (mx.sym.softmax, mx.sym.log_softmax, mx.sym.softmin):
        double = operator(x, dtype="float64")
        assert double.infer_type() == ([np.float64], [np.float64], [])
        assert double.infer_type(x="float16")[:2] == ([np.float16], [np.float64])
        assert double.simple_bind(mx.cpu(), x=(2, 2)).arg_dict["x"].dtype == np.float64
    assert mx.sym.InstanceNorm(x).infer_type()[0] == [np.float32] * 3
    with pytest.raises(mx.base.MXNetError, match="zzz"):
        fc.infer_shape(zzz=(1, 2))
    with pytest.raises(mx.base.MXNetError, match="fc"):
        fc.infer_shape(x=(2, 5), fc_weight=(4, 4))
    with pytest.raises(TypeError):
        fc.infer_shape(x=5)


def test_outputs_are_found_by_number_and_by_name(mx, fc) -> None:
    split = mx.sym.split(fc, num_outputs=3, axis=1, name="s")
    assert split.list_outputs() == ["s_output0", "s_output1", "s_output2"]
    assert split["s_output1"].list_outputs() == ["s_output1"]
    assert [part.list_outputs()[0] for part in split] == split.list_outputs()
    assert split.get_internals()["fc_output"].list_arguments() == ["x", "fc_weight", "fc_bias"]
    with pytest.raises(ValueError, match="nope"):
        split["nope"]
    with pytest.raises(IndexError):
        split[3]
    with pytest.raises(mx.base.NotImplementedForSymbol):
        bool(split)


def test_composing_replaces_variables_in_a_copy(mx, fc) -> None:
    composed = fc(x=mx.sym.var("q") * 2)
    assert composed.list_arguments() == ["q", "fc_weight", "fc_bias"]
    assert fc.list_arguments() == ["x", "fc_weight", "fc_bias"]
    with pytest.raises(TypeError):
        fc(x=5)
    with pytest.raises(mx.base.MXNetError, match="zz"):
        fc(zz=mx.sym.var("q"))


def test_symbols_survive_files_copies_and_pickling(mx, fc, tmp_path: Path) -> None:
    path = str(tmp_path / "fc-symbol.json")
    fc.save(path)
    for again in (mx.sym.load(path), copy.deepcopy(fc), pickle.loads(pickle.dumps(fc))):
        assert again.tojson() == fc.tojson()
    with pytest.raises(mx.base.MXNetError, match="nowhere"):
        fc.save(str(tmp_path / "nowhere" / "fc.json"))


def test_variables_carry_hints(mx) -> None:
    x = mx.sym.var("x", shape=(2, 3), dtype="float64", lr_mult=2, __own__="1")
    assert x.attr_dict()["x"] == {
        "__shape__": "(2, 3)", "__dtype__": "1", "__lr_mult__": "2", "lr_mult": "2", "__own__": "1",
    }  # fmt: skip
    assert (x + 1).infer_shape()[1] == [(2, 3)]
    with pytest.raises(ValueError, match="foo"):
        mx.sym.var("x", foo="1")
    with pytest.raises(TypeError):
        mx.sym.var(5)


def test_an_executor_holds_arrays_and_gives_new_outputs_each_time(mx, fc) -> None:
    executor = fc.simple_bind(mx.cpu(), grad_req="null", x=(2, 5))
    executor.copy_params_from({"fc_weight": mx.nd.ones((3, 5)), "fc_bias": mx.nd.ones((3,))})
    first = executor.forward(x=mx.nd.ones((2, 5)))[0]
    second = executor.forward(x=np.zeros((2, 5)))[0]
    assert first.asnumpy().tolist() == [[6] * 3] * 2
    assert second.asnumpy().tolist() == [[1] * 3] * 2
    assert executor.output_dict["fc_output"] is executor.outputs[0]
    larger = executor.reshape(x=(4, 5), allow_up_sizing=True)
    assert larger.arg_dict["fc_weight"] is executor.arg_dict["fc_weight"]
    assert larger.forward(x=mx.nd.ones((4, 5)))[0].shape == (4, 3)
    with pytest.raises(TypeError, match="zz"):
        executor.forward(zz=mx.nd.ones((1,)))
    with pytest.raises(ValueError, match="Shape not match"):
        executor.forward(x=mx.nd.ones((5, 5)))
    with pytest.raises(mx.base.MXNetError, match=r"up siz(e|ing)"):
        executor.reshape(x=(4, 5))
    with pytest.raises(ValueError, match="fc_weight"):
        fc.bind(mx.cpu(), {"x": mx.nd.ones((2, 5))})


def test_arrays_and_symbols_do_not_mix(mx) -> None:
    x = mx.sym.var("x")
    with pytest.raises(AssertionError, match="data"):
        mx.sym.relu(mx.nd.ones((2,)))
    with pytest.raises(TypeError):
        x + mx.nd.ones((2,))
    with pytest.raises(AssertionError, match="data"):
        mx.nd.relu(x)
    for method in ("asnumpy", "wait_to_read", "asscalar"):
        with pytest.raises(mx.base.NotImplementedForSymbol):
            getattr(x, method)()


def test_a_slice_of_a_symbol_is_a_group(mx) -> None:
    parts = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc").get_internals()
    assert parts[1:3].list_outputs() == ["fc_weight", "fc_bias"]
    assert parts[:].list_outputs() == parts.list_outputs()


def test_attributes_can_be_set_by_keyword(mx) -> None:
    x = mx.sym.var("x")
    x._set_attr(note="1", lr_mult="2")
    assert x.attr("note") == "1"
    assert x.list_attr()["__lr_mult__"] == "2"
    with pytest.raises(ValueError, match="string"):
        x._set_attr(note=1)


def test_attributes_of_a_scope_that_mxnet_hides_are_hidden(mx) -> None:
    with mx.AttrScope(ctx_group="dev1"):
        x = mx.sym.var("x")
    assert "__ctx_group__" in x.tojson()
    assert x.attr("ctx_group") == "dev1"


def test_casts_of_mixed_precision_are_not_written(mx, tmp_path: Path) -> None:
    """MXNet 1.9.1 does the same, unless asked for them; outputs that are casts stay."""
    x, y = mx.sym.var("x"), mx.sym.var("y")
    half = mx.sym.amp_cast(mx.sym.amp_cast(x, dtype="float16"), dtype="float32", name="back")
    both = mx.sym.amp_multicast(half, y, num_outputs=2, name="both")
    net = mx.sym.broadcast_sub(both[1], both[0], name="difference")

    def ops(text: str) -> list[str]:
        return [node["op"] for node in json.loads(text)["nodes"]]

    assert ops(net.tojson()) == ["null", "null", "broadcast_sub"]
    assert sorted(ops(net.tojson(remove_amp_cast=False))) == [
        *("amp_cast", "amp_cast", "amp_multicast", "broadcast_sub", "null", "null")
    ]
    net.save(str(tmp_path / "net.json"))
    assert mx.sym.load(str(tmp_path / "net.json")).eval(x=mx.nd.ones(1), y=mx.nd.ones(1) * 3)[0].asscalar() == 2
    net.save(str(tmp_path / "all.json"), remove_amp_cast=False)
    assert "amp_cast" in (tmp_path / "all.json").read_text()
    assert "amp_cast" in ops(pickle.loads(pickle.dumps(net)).tojson(remove_amp_cast=False))
    assert ops(half.tojson())[-1] == "amp_cast"


@pytest.mark.parametrize(
    ("data", "gamma", "axes"),
    [
        ((2, 3), (2, 3), (2, 3)),
        ((2, 3, 4, 5), (2, 3), (2, 3, 1, 1)),
        ((40, 16, 8, 8), (40, 1), (40, 1, 1, 1)),
        ((40, 16, 8, 8), (16,), (1, 16, 1, 1)),
        ((40, 16, 8, 8), (40,), (40, 1, 1, 1)),
        ((33, 7), (33,), (33, 1)),
        ((4,), (4,), (4,)),
    ],
)
def test_slopes_of_prelu_differ_by_channel_and_by_row(mx, data, gamma, axes) -> None:
    """MXNet 1.9.1 does the same; also if the operator is part of a loop, and batches are large."""
    random = np.random.RandomState(7)
    x, slopes = (random.uniform(-1, 1, shape).astype("float32") for shape in (data, gamma))
    names = mx.sym.var("x"), mx.sym.var("gamma")
    op = mx.nd.CachedOp(mx.sym.LeakyReLU(names[0] * 2 + 1, names[1], act_type="prelu") * 3)
    shifted = x * 2 + 1
    want = np.where(shifted > 0, shifted, shifted * slopes.reshape(axes)) * 3
    found = op(mx.nd.array(x), mx.nd.array(slopes)).asnumpy()
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_the_operator_of_a_symbol_stands_alone(mx) -> None:
    names = [mx.sym.var(name) for name in ("data", "param", "h", "c")]
    graph = mx.sym.RNN(*names, state_size=10, num_layers=2, bidirectional=True, state_outputs=True, mode="lstm")
    alone = graph._gen_atomic_symbol()
    assert len(alone.list_outputs()) == 3
    assert alone.attr("state_size") == "10"
    assert not set(alone.list_arguments()) & {"data", "param", "h", "c"}
    with pytest.raises(TypeError, match="'data' is no operator"):
        names[0]._gen_atomic_symbol()


@pytest.mark.parametrize("shape", [(0, 4, 2, 2), (1, 0, 2, 2), (1, 4, 0, 2)])
@pytest.mark.parametrize("operator", ["depth_to_space", "space_to_depth"])
def test_blocks_of_no_pixels_are_refused(mx, operator: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(mx.base.MXNetError, match="has no elements to be moved"):
        getattr(mx.nd, operator)(mx.nd.empty(shape), block_size=2)


@pytest.mark.parametrize("counted", [{}, {"num_args": 1}, {"num_args": 2}])
def test_the_weight_of_bilinear_upsampling_is_made_whatever_number_of_inputs_is_said(mx, counted) -> None:
    symbol = mx.sym.UpSampling(mx.sym.var("x"), scale=2, sample_type="bilinear", num_filter=3, name="u", **counted)
    assert symbol.list_arguments() == ["x", "u_weight"]
    assert symbol.infer_shape(x=(1, 3, 4, 4)) == ([(1, 3, 4, 4), (3, 1, 4, 4)], [(1, 3, 8, 8)], [])


@pytest.mark.parametrize("how", ["infer_shape", "infer_shape_partial", "infer_type"])
@pytest.mark.parametrize("last", [None, "known"])
def test_more_shapes_or_types_than_arguments_are_refused(mx, how: str, last: str | None) -> None:
    one = "float32" if how == "infer_type" else (1,)
    infer = getattr(mx.sym.var("a") + 1, how)
    assert infer(one)[0] == [np.float32 if how == "infer_type" else (1,)]
    with pytest.raises(mx.base.MXNetError, match=r"2 (shapes|types) were given, but the symbol has 1 arguments: a"):
        infer(one, last and one)


def test_shapes_of_variables_are_those_of_numpy_while_these_are_on(mx) -> None:
    for shape in ((), (0, 2)):
        with pytest.warns(UserWarning, match="Cannot decide shape"):
            assert mx.sym.var("x", shape=shape).infer_shape() == (None, None, None)
        with mx.util.np_shape(True):
            assert mx.sym.var("x", shape=shape).infer_shape() == ([shape], [shape], [])
    with mx.util.np_shape(True), pytest.warns(UserWarning, match="Cannot decide shape"):
        assert mx.sym.var("x", shape=(-1, 2)).infer_shape() == (None, None, None)


def test_a_parameter_without_axes_is_bound(mx) -> None:
    class Scaled(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.factor = self.params.get("factor", shape=(), init="ones")

        def hybrid_forward(self, F, x, factor):
            return x * factor

    mx.npx.set_np()
    try:
        out = Scaled()(mx.sym.var("x").as_np_ndarray())
        made = out.simple_bind(mx.cpu(), x=(2,))
        assert [array.shape for array in made.arg_arrays] == [(2,), ()]
    finally:
        mx.npx.reset_np()


def test_files_show_attributes_as_programs_gave_them(mx) -> None:
    a = mx.sym.var("a")
    for made, attrs in (
        (a.reshape(-1), {"shape": "-1"}),
        (a.reshape([2, -1]), {"shape": "[2, -1]"}),
        (a.reshape((2, -1)), {"shape": "(2, -1)"}),
        (a.diag(), {"k": "0"}),
        (a.diag(k=1), {"k": "1"}),
    ):
        assert made.list_attr() == attrs
    assert a.reshape(-1).infer_shape(a=(2, 3))[1] == [(6,)]
    assert a.reshape([2, -1]).infer_shape(a=(4, 3))[1] == [(2, 6)]
    with mx.name.NameManager():
        outputs, _ = mx.gluon.rnn.LSTMCell(1).unroll(2, a, layout="NTC", merge_outputs=False)
    split = next(node for node in json.loads(outputs[0].tojson())["nodes"] if node["op"] == "SliceChannel")
    assert split["attrs"] == {"axis": "1", "num_outputs": "2", "squeeze_axis": "1"}


def test_the_only_part_of_an_array_has_a_number_in_its_name(mx) -> None:
    part = mx.sym.SliceChannel(mx.sym.var("a"), num_outputs=1, name="s")
    assert part.list_outputs() == ["s_output0"]
    assert part.get_internals()["s_output0"].list_outputs() == ["s_output0"]


def test_symbols_of_constants_and_random_numbers_have_attributes_of_programs(mx) -> None:
    a, attr = mx.sym.var("a"), {"__k__": "v"}
    for made in (
        mx.sym.zeros((2,), attr=attr),
        mx.sym.eye(2, attr=attr),
        mx.sym.full((2,), 1, attr=attr),
        mx.sym.random.uniform(shape=(2,), attr=attr),
        mx.sym.random.normal(a, a, attr=attr),
        mx.sym.random.multinomial(a, attr=attr),
        mx.sym.random.shuffle(a, attr=attr),
    ):
        assert made.attr("__k__") == "v"
        assert "attr" not in made.list_attr()


def test_operators_without_parameters_keep_attributes_of_programs(mx) -> None:
    a, b, attr = mx.sym.var("a"), mx.sym.var("b"), {"mood": "angry"}
    for made in (
        mx.sym.LinearRegressionOutput(a, b, attr=attr),
        mx.sym.linalg.det(a, attr=attr),
        mx.sym.sparse.retain(a, b, attr=attr),
    ):
        assert made.attr("mood") == "angry"


def test_values_that_a_symbol_cannot_take_are_refused(mx) -> None:
    a = mx.sym.var("a")
    with pytest.raises(ValueError, match="Set Attr only accepts string values"):
        mx.sym.var("b", attr={"k": 3})
    for function in (lambda: a + np.bool_(1), lambda: np.bool_(1) - a, lambda: mx.sym.maximum(a, np.bool_(1))):
        with pytest.raises(TypeError, match="not supported"):
            function()
    with pytest.raises(TypeError, match="not supported"):
        a < 1j  # noqa: B015
    for function in (lambda: a + 1j, lambda: a < np.bool_(1)):
        with pytest.raises(mx.base.MXNetError, match="expect double"):
            function()
    assert (a + np.float16(1.5)).list_attr() == {"scalar": "1.5"}
