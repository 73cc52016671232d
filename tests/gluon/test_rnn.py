"""Recurrent cells of the symbolic interface: names and values are MXNet's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support import recorded


def filled(mx, names: list[str], shapes: list) -> dict:
    """Arrays by name: the numbers that tests/recorded/record.py used."""
    return {
        name: mx.nd.array(np.sin(np.arange(np.prod(shape)) * 0.3 + place).reshape(shape))
        for place, (name, shape) in enumerate(zip(names, shapes, strict=True))
    }


def unrolled(mx, case: dict):
    """The cell and what its unroll gives, as one symbol."""
    with mx.name.NameManager():
        cell = eval(case["make"], {"rnn": mx.rnn})
        inputs = [mx.sym.var(name) for name in case["known"] if not name.startswith("state")]
        begin = [mx.sym.var(name) for name in case["known"] if name.startswith("state")] or None
        outputs, states = cell.unroll(3, inputs if len(inputs) > 1 else inputs[0], begin, **case["arguments"])
        flat = [one for state in states for one in (state if isinstance(state, list) else [state])]
        return cell, mx.sym.Group([*(outputs if isinstance(outputs, list) else [outputs]), *flat])


@pytest.mark.parametrize("case", recorded("cells"), ids=lambda c: f"{c['make']}-{c['arguments']}")
def test_an_unrolled_cell_is_the_one_of_mxnet(mx, case: dict) -> None:
    _, symbol = unrolled(mx, case)
    assert symbol.list_arguments() == case["names"]
    assert symbol.list_outputs() == case["outputs"]
    assert [node["name"] for node in json.loads(symbol.tojson())["nodes"]] == case["nodes"]
    assert {n: a["__init__"] for n, a in symbol.attr_dict().items() if "__init__" in a} == case["inits"]
    shapes, _, _ = symbol.infer_shape(**{name: tuple(shape) for name, shape in case["known"].items()})
    assert shapes == [tuple(shape) for shape in case["shapes"]]
    results = symbol.bind(mx.cpu(), filled(mx, case["names"], case["shapes"])).forward()
    for result, want in zip(results, case["values"], strict=True):
        np.testing.assert_allclose(result.asnumpy().ravel(), want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("case", recorded("packed"), ids=lambda c: c["mode"])
def test_the_array_of_a_fused_cell_is_cut_as_in_mxnet(mx, case: dict) -> None:
    cell = mx.rnn.FusedRNNCell(2, case["layers"], case["mode"], bidirectional=case["both"])
    name = f"{case['mode']}_parameters"
    parts = cell.unpack_weights({name: mx.nd.arange(case["size"]), "other": mx.nd.zeros(1)})
    parts.pop("other")
    assert list(parts) == list(case["parts"])
    for part, want in case["parts"].items():
        assert parts[part].asnumpy().tolist() == np.array(want["values"]).reshape(want["shape"]).tolist()
    again = cell.pack_weights(parts)
    assert again[name].asnumpy().tolist() == list(range(case["size"]))
    # The cells that unfuse makes take the same parts.
    single = cell.unfuse().pack_weights(parts)
    sides, hidden, gates = 1 + case["both"], 2, len(cell._gate_names)
    assert len(single) == 4 * sides * case["layers"]
    assert single[f"{case['mode']}_l0_i2h_weight"].shape == (gates * hidden, 3)


def test_a_checkpoint_of_cells_holds_single_gates(mx, tmp_path: Path) -> None:
    cell = mx.rnn.LSTMCell(4, prefix="a_")
    outputs, _ = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    shapes, _, _ = outputs.infer_shape(data=(3, 2, 5))
    values = filled(mx, outputs.list_arguments(), shapes)
    args = {name: value for name, value in values.items() if name.startswith(("a_i2h", "a_h2h"))}
    prefix = str(tmp_path / "model")
    mx.rnn.save_rnn_checkpoint(cell, prefix, 3, outputs, args, {})
    assert "arg:a_i2h_f_bias" in mx.nd.load(f"{prefix}-0003.params")
    symbol, loaded, aux = mx.rnn.load_rnn_checkpoint([cell], prefix, 3)
    assert symbol.list_arguments() == outputs.list_arguments()
    assert (set(loaded), aux) == (set(args), {})
    for name, value in args.items():
        assert np.array_equal(loaded[name].asnumpy(), value.asnumpy())
    mx.rnn.do_rnn_checkpoint(cell, prefix, period=2)(1, outputs, args, {})
    assert (tmp_path / "model-0002.params").exists()


def test_initial_values_know_the_forget_gate(mx) -> None:
    array = mx.nd.empty((2 * 4 * (3 + 2 + 2),))
    mx.init.FusedRNN(mx.init.One(), 2, 1, "lstm", forget_bias=5.0)._init_weight("parameters", array)
    parts = mx.rnn.FusedRNNCell(2, 1, "lstm", prefix="").unpack_weights({"parameters": array})
    assert parts["l0_i2h_f_bias"].asnumpy().tolist() == [5, 5]
    assert parts["l0_i2h_i_bias"].asnumpy().tolist() == [0, 0]
    assert (parts["l0_h2h_o_weight"].asnumpy() == 1).all()
    text = mx.init.FusedRNN(mx.init.One(), 2, 1, "lstm").dumps()
    # As MXNet 1.9.1 writes it.
    assert text == (
        '["fusedrnn", {"init": "[\\"one\\", {}]", "num_hidden": 2, "num_layers": 1, "mode": "lstm", '
        '"bidirectional": false, "forget_bias": 1.0}]'
    )
    again = mx.init.create(text)
    assert isinstance(again, mx.init.FusedRNN)


def test_sentences_become_batches_of_buckets(mx, capsys) -> None:
    words = [line.split() for line in ("a b c", "a b", "c a b", "b c", "a b c a b c a")]
    sentences, numbers = mx.rnn.encode_sentences(words, start_label=1, invalid_label=0)
    assert numbers == {"\n": 0, "a": 1, "b": 2, "c": 3}
    assert mx.rnn.encode_sentences([["z"]], dict(numbers), unknown_token="?", start_label=7)[0] == [[7]]
    with pytest.raises(AssertionError, match="Unknown token z"):
        mx.rnn.encode_sentences([["z"]], numbers)
    for layout in ("NT", "TN"):
        found = mx.rnn.BucketSentenceIter(sentences, 2, buckets=[2, 4], invalid_label=0, layout=layout)
        assert "discarded 1 sentences" in capsys.readouterr().out
        assert found.default_bucket_key == 4
        seen = []
        for batch in found:
            data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
            if layout == "TN":
                data, label = data.T, label.T
            assert data.shape == (2, batch.bucket_key)
            assert np.array_equal(data[:, 1:], label[:, :-1])
            assert (label[:, -1] == 0).all()
            seen += [[int(word) for word in row if word] for row in data]
        assert sorted(seen) == sorted(sentences[:4])
        found.reset()
        assert len(list(found)) == 2


def test_what_cells_cannot_do_is_said(mx) -> None:
    rnn = mx.rnn
    with pytest.raises(NotImplementedError, match="cannot be stepped"):
        rnn.FusedRNNCell(3)(mx.sym.var("x"), [])
    with pytest.raises(ValueError, match="expected one of rnn_relu"):
        rnn.FusedRNNCell(3, mode="nonsense")
    with pytest.raises(AssertionError, match="unfuse first"):
        rnn.ZoneoutCell(rnn.FusedRNNCell(3))
    inner = rnn.RNNCell(3)
    rnn.ResidualCell(inner)
    with pytest.raises(AssertionError, match="Call the modifier cell instead"):
        inner.begin_state()
    with pytest.raises(AssertionError, match="2 inputs for 3 steps"):
        rnn.GRUCell(3).unroll(3, [mx.sym.var("x"), mx.sym.var("y")])
    shared = rnn.RNNParams("same_")
    first, second = rnn.RNNCell(3, params=shared), rnn.RNNCell(3, params=shared)
    assert first._iW.name == second._iW.name == "same_i2h_weight"


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_last_states_of_a_fused_cell_are_joined_along_the_batch(mx, mode: str) -> None:
    cell = mx.rnn.FusedRNNCell(2, 1, mode, get_next_state=True, prefix="a_")
    outputs, states = cell.unroll(3, mx.sym.var("data"), layout="TNC", merge_outputs=True)
    assert {state.attr("__layout__") for state in states} == {"LNC"}
    contexts = [mx.cpu(0), mx.cpu(1)]
    module = mx.mod.Module(mx.sym.Group([outputs, *states]), label_names=None, context=contexts)
    module.bind([mx.io.DataDesc("data", (3, 4, 5), layout="TNC")], for_training=False)
    module.init_params()
    module.forward(mx.io.DataBatch([mx.nd.ones((3, 4, 5))]), is_train=False)
    assert [one.shape for one in module.get_outputs()] == [(3, 4, 2)] + [(1, 4, 2)] * len(states)


def test_cells_name_their_gates_as_in_mxnet(mx) -> None:
    rnn = mx.rnn
    assert rnn.LSTMCell(2)._gate_names == ["_i", "_f", "_c", "_o"]
    assert rnn.RNNCell(2)._gate_names == ("",)
    assert rnn.FusedRNNCell(2)._gate_names == ["_i", "_f", "_c", "_o"] and rnn.FusedRNNCell(2)._num_gates == 4
    assert rnn.FusedRNNCell(2, mode="rnn_relu")._gate_names == [""]


def test_first_states_of_cells_around_others_are_symbols(mx) -> None:
    rnn = mx.gluon.rnn
    around = (
        lambda cell: rnn.ZoneoutCell(cell, 0.1),
        rnn.ResidualCell,
        lambda cell: mx.gluon.contrib.rnn.VariationalDropoutCell(cell, 0.1),
    )
    for make in around:
        states = make(rnn.LSTMCell(3)).begin_state()
        assert len(states) == 2 and all(isinstance(one, mx.sym.Symbol) for one in states)
        states = make(rnn.GRUCell(3)).begin_state(mx.nd.ones, batch_size=2)
        assert [one.asnumpy().tolist() for one in states] == [[[1.0] * 3] * 2]
    stack = rnn.SequentialRNNCell()
    stack.add(rnn.ResidualCell(rnn.GRUCell(3)))
    stack.add(rnn.GRUCell(3))
    assert [one.shape for one in stack.begin_state(batch_size=2, func=mx.nd.ones)] == [(2, 3)] * 2
