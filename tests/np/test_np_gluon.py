"""Gluon under ``npx.set_np()``: blocks of programs, their files, and blocks that MXNet 1.9.1
exported (recorded/record_np_blocks.py).
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

from np_blocks import BLOCKS, filled, outputs, sample
from support import RECORDED

FOLDER = RECORDED / "np_blocks"


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    with onp.load(FOLDER / "outputs.npz") as stored:
        return {key: stored[key] for key in stored.files}


def check(mx: Any, out: Any, name: str, recorded: dict[str, Any]) -> None:
    parts = out if isinstance(out, (list, tuple)) else [out]
    assert all(type(part) is mx.np.ndarray for part in parts)
    got = outputs(out)
    assert len(got) == sum(key.startswith(name) for key in recorded)
    for number, value in enumerate(got):
        want = recorded[f"{name}{number}"]
        assert (value.shape, value.dtype) == (want.shape, want.dtype)
        onp.testing.assert_allclose(value, want, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_that_mxnet_exported_gives_its_outputs(mx: Any, recorded: dict[str, Any], name: str) -> None:
    net = mx.gluon.SymbolBlock.imports(f"{FOLDER / name}-symbol.json", ["data"], f"{FOLDER / name}-0000.params")
    check(mx, net(mx.np.array(sample(BLOCKS[name][1], 7))), name, recorded)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_gives_the_outputs_of_mxnet_before_and_after_hybridize(
    mx: Any, recorded: dict[str, Any], name: str
) -> None:
    net, x = filled(mx, name)
    check(mx, net(x), name, recorded)
    net.hybridize()
    check(mx, net(x), name, recorded)


@pytest.mark.parametrize("name", BLOCKS)
def test_parameters_that_mxnet_saved_are_loaded(mx: Any, recorded: dict[str, Any], name: str) -> None:
    make, shape = BLOCKS[name]
    net = make(mx)
    net.load_parameters(str(FOLDER / f"{name}.params"))
    check(mx, net(mx.np.array(sample(shape, 7))), name, recorded)
    assert all(type(one.data()) is mx.np.ndarray for one in net.collect_params().values())


@pytest.mark.parametrize("name", BLOCKS)
def test_an_export_is_read_again(mx: Any, recorded: dict[str, Any], name: str, tmp_path: Path) -> None:
    net, x = filled(mx, name)
    net.hybridize()
    net(x)
    net.export(str(tmp_path / "net"))
    assert '"is_np_shape": ["int", 1]' in (tmp_path / "net-symbol.json").read_text()
    again = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    check(mx, again(x), name, recorded)


def test_the_symbol_of_a_block_has_the_operators_that_mxnet_writes(mx: Any) -> None:
    import json

    for name in BLOCKS:
        net, x = filled(mx, name)
        net.hybridize()
        net(x)
        ours = json.loads(net._cached_graph[1].tojson())
        theirs = json.loads(Path(f"{FOLDER / name}-symbol.json").read_text())
        kept = [sorted(node["op"] for node in graph["nodes"]) for graph in (ours, theirs)]
        assert kept[0] == kept[1]


def test_a_decorated_block_makes_arrays_of_np_without_the_switch(mx: Any) -> None:
    mx.npx.reset_np()

    class Plain(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.w = self.params.get("w", shape=(2, 2), init="ones")

        def hybrid_forward(self, F: Any, x: Any, w: Any) -> Any:
            return F.dot(x, w)

    class Inside(Plain):
        def hybrid_forward(self, F: Any, x: Any, w: Any) -> Any:
            return F.np.dot(x, w) + F.np.ones(())

    legacy, inside = Plain(), mx.util.use_np(Inside)()
    legacy.initialize()
    inside.initialize()
    assert type(legacy(mx.nd.ones((2, 2)))) is mx.nd.NDArray
    for hybrid in (False, True):
        if hybrid:
            inside.hybridize()
        out = inside(mx.np.ones((2, 2)))
        assert type(out) is mx.np.ndarray
        assert out.tolist() == [[3, 3], [3, 3]]
    assert type(inside.w.data()) is mx.np.ndarray
    assert not mx.util.is_np_array()


def test_layers_of_one_network_run_from_many_threads_under_the_interface(mx: Any, recorded: dict[str, Any]) -> None:
    net, x = filled(mx, "cnn")
    net.hybridize()
    net(x)
    wrong: list[str] = []

    def run() -> None:
        # A new thread has the interface off; what a network gives is decided when it is built.
        if mx.util.is_np_array():
            wrong.append("the switch of another thread")
        for _ in range(20):
            out = net(x)
            if type(out) is not mx.np.ndarray or not onp.allclose(out.asnumpy(), recorded["cnn0"], 2e-4, 1e-5):
                wrong.append(str(out))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_a_loader_gives_arrays_of_np(mx: Any) -> None:
    data = mx.gluon.data.ArrayDataset(sample((6, 2)), onp.arange(6))
    for workers in (0, 2):
        loader = mx.gluon.data.DataLoader(data, batch_size=4, num_workers=workers, thread_pool=True)
        batches = list(loader)
        assert [[type(part) for part in batch] for batch in batches] == [[mx.np.ndarray] * 2] * 2
        assert [batch[0].shape for batch in batches] == [(4, 2), (2, 2)]
    assert all(type(one) is mx.np.ndarray for one in mx.gluon.utils.split_and_load(mx.np.ones((4, 2)), [mx.cpu()]))


def test_losses_metrics_and_recurrent_layers_take_arrays_of_np(mx: Any) -> None:
    scores, labels = mx.np.array([[1.0, 2.0], [3.0, 0.5]]), mx.np.array([1.0, 0.0])
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()(scores, labels)
    assert type(loss) is mx.np.ndarray
    onp.testing.assert_allclose(loss.asnumpy(), [0.313262, 0.078889], rtol=1e-4)
    metric = mx.metric.Accuracy()
    metric.update([labels], [scores])
    assert metric.get() == ("accuracy", 1.0)
    lstm = mx.gluon.rnn.LSTM(3)
    lstm.initialize()
    out = lstm(mx.np.ones((4, 2, 5)))
    assert (type(out), out.shape) == (mx.np.ndarray, (4, 2, 3))
    cell = mx.gluon.rnn.GRUCell(3)
    cell.initialize()
    out, state = cell(mx.np.ones((2, 5)), cell.begin_state(2))
    assert [type(one) for one in (out, *state)] == [mx.np.ndarray] * 2


def test_arrays_that_mxnet_saved_with_npx_save_are_loaded(mx: Any, tmp_path: Path) -> None:
    found = mx.npx.load(str(FOLDER / "arrays"))
    assert {name: (type(one), one.shape) for name, one in found.items()} == {
        "scalar": (mx.np.ndarray, ()),
        "empty": (mx.np.ndarray, (0, 3)),
        "x": (mx.np.ndarray, (3, 5)),
    }
    assert found["scalar"].item() == 2.5
    mx.npx.save(str(tmp_path / "again"), found)
    assert (tmp_path / "again").read_bytes() == (FOLDER / "arrays").read_bytes()
    mx.npx.reset_np()
    with pytest.raises(ValueError, match=r"npx\.set_np"):
        mx.npx.load(str(FOLDER / "arrays"))
    with pytest.raises(ValueError, match=r"np_shape"):
        mx.nd.load(str(FOLDER / "arrays"))
    with mx.util.np_shape():
        assert mx.nd.load(str(FOLDER / "arrays"))["scalar"].shape == ()


def test_constants_of_blocks_are_arrays_of_np(mx: Any) -> None:
    class Shifted(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.shift = self.params.get_constant("shift", mx.np.array([1.0, 2.0]))

        def hybrid_forward(self, F: Any, x: Any, shift: Any) -> Any:
            return x + shift

    block = Shifted()
    block.initialize()
    assert type(block.shift.data()) is mx.np.ndarray
    for _ in range(2):
        assert block(mx.np.ones((2,))).asnumpy().tolist() == [2, 3]
        block.hybridize()
    scalar = mx.gluon.Constant("scalar", mx.np.array(3.0))
    scalar.initialize()
    assert scalar.data().shape == () and scalar.data().item() == 3
    whole = mx.gluon.Constant("whole", onp.array([1, 2]))
    whole.initialize()
    assert whole.data().dtype == onp.int64 and whole.data().asnumpy().tolist() == [1, 2]
