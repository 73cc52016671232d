"""Raw weights that a model reads packed are released, and restored bit for bit when they are
read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support import KINDS, last_json, run_python

MIB = 1 << 20
# A 1x1 convolution with a BatchNorm to fold, a depthwise one (small: stays) and a dense layer: 2
# and 16 MiB of weights.
LAYERS = {"conv_weight": (1024, 512, 1, 1), "dense_weight": (1024, 4096)}


def weights(seed: int) -> dict[str, np.ndarray]:
    """All parameters. Among the large ones are zeros of both signs and numbers below the normal
    ones.
    """
    random = np.random.RandomState(seed)
    values = {
        "conv_weight": random.randn(1024, 512, 1, 1).astype("float32"),
        "bn_gamma": random.uniform(-2, 2, 1024).astype("float32"),
        "bn_beta": random.randn(1024).astype("float32"),
        "bn_moving_mean": random.randn(1024).astype("float32"),
        "bn_moving_var": random.uniform(0.1, 30, 1024).astype("float32"),
        "dense_weight": (random.randn(1024, 4096) / 64).astype("float32"),
        "dense_bias": random.randn(1024).astype("float32"),
    }
    for name in LAYERS:
        flat = values[name].reshape(-1)
        flat[5::1001], flat[6::1001], flat[7::5003] = 0.0, -0.0, 1e-41
    return values


PRELUDE = """
import json, sys, threading
import numpy as np
import mxrt as mx

folder, values = sys.argv[1], dict(np.load(sys.argv[1] + "/values.npz"))
large = ["conv_weight", "dense_weight"]

def used():
    mx.nd.waitall()  # for what looks and what releases, too
    return mx.runtime.info()["memory_in_use"]

def load():
    x = mx.sym.var("data")
    y = mx.sym.Convolution(x, kernel=(1, 1), num_filter=1024, no_bias=True, name="conv")
    y = mx.sym.BatchNorm(y, fix_gamma=False, eps=1e-5, name="bn")
    y = mx.sym.Activation(y, act_type="relu")
    y = mx.sym.FullyConnected(y, num_hidden=1024, name="dense")
    kind = lambda name: ("aux:" if "moving" in name else "arg:") + name
    mx.nd.save(folder + "/net-0000.params", {kind(k): mx.nd.array(v) for k, v in values.items()})
    y.save(folder + "/net-symbol.json")
    return mx.gluon.SymbolBlock.imports(folder + "/net-symbol.json", ["data"], folder + "/net-0000.params")

def param(net, name):
    return net.collect_params()[name].data()

def same(net, name):
    return bool((param(net, name).asnumpy().view("u4") == values[name].view("u4")).all())

image = np.random.RandomState(1).rand(1, 512, 2, 2).astype("float32")
x = mx.nd.array(image)
"""


def child(folder: Path, code: str, env: dict[str, str] | None = None):
    np.savez(folder / "values.npz", **weights(3))
    return last_json(run_python(PRELUDE + code, folder, env=env))


def expected(values: dict[str, np.ndarray]) -> np.ndarray:
    image = np.random.RandomState(1).rand(1, 512, 2, 2).astype("float32")
    wide = {name: value.astype("float64") for name, value in values.items()}
    y = np.einsum("oi,ihw->ohw", wide["conv_weight"][:, :, 0, 0], image[0].astype("float64"))
    names = ("gamma", "beta", "moving_mean", "moving_var")
    gamma, beta, mean, var = (wide[f"bn_{name}"][:, None, None] for name in names)
    y = (y - mean) / np.sqrt(var + 1e-5) * gamma + beta
    return wide["dense_weight"] @ np.maximum(y, 0).reshape(-1) + wide["dense_bias"]


def test_what_was_packed_takes_no_second_memory_and_comes_back_bit_for_bit(mx, tmp_path: Path) -> None:
    answer, loaded, packed, same, after, again = child(
        tmp_path,
        """
before = used()
net = load()
loaded = used() - before
answer = net(x).asnumpy()
packed = used() - before
right = [same(net, name) for name in values]
after = used() - before
print(json.dumps([answer.tolist(), loaded, packed, right, after, bool((net(x).asnumpy() == answer).all())]))
""",
    )
    np.testing.assert_allclose(answer[0], expected(weights(3)), rtol=2e-4, atol=2e-3)
    assert loaded > 18 * MIB
    assert packed < 1.25 * loaded, "one copy of the weights, and a few bits"
    assert all(same)
    assert after > 1.9 * loaded, "a parameter was read: now both forms are there"
    assert again


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_keeps_the_values(mx, tmp_path: Path, kind: str) -> None:
    same = child(
        tmp_path,
        """
net = load()
answers = [net(x).asnumpy() for _ in range(3)]
used()
print(json.dumps([same(net, name) for name in large] + [bool((answers[0] == a).all()) for a in answers]))
""",
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert all(same)


def test_new_values_and_parts_of_them_are_seen_by_the_next_call(mx, tmp_path: Path) -> None:
    changed, part, rest, back = child(
        tmp_path,
        """
net = load()
first = net(x).asnumpy()
used()
param(net, "dense_weight")[3:4] = 0.0
part = net(x).asnumpy()
used()
now = param(net, "dense_weight").asnumpy()
rest = bool((np.delete(now, 3, 0).view("u4") == np.delete(values["dense_weight"], 3, 0).view("u4")).all())
net.collect_params()["dense_weight"].set_data(mx.nd.array(-values["dense_weight"]))
turned = net(x).asnumpy()
used()
net.collect_params()["dense_weight"].set_data(mx.nd.array(values["dense_weight"]))
back = bool((net(x).asnumpy() == first).all())
bias = values["dense_bias"]
changed = bool(np.allclose(turned - bias, bias - first, rtol=1e-3, atol=1e-2))
only = bool((np.delete(part, 3, 1) == np.delete(first, 3, 1)).all()) and part[0, 3] == bias[3]
print(json.dumps([changed, bool(only), rest, back]))
""",
    )
    assert changed and part and rest and back


def test_calls_and_readers_and_writers_at_once_see_whole_values(mx, tmp_path: Path) -> None:
    wrong, calls = child(
        tmp_path,
        """
wrong, calls, stop = [], [], threading.Event()
other = {name: np.roll(values[name], 1, 0) for name in large}
expected = []
for one in (values, {**values, "dense_weight": other["dense_weight"]}):
    net = load()
    net.collect_params()["dense_weight"].set_data(mx.nd.array(one["dense_weight"]))
    expected.append(net(x).asnumpy())

def guarded(body):
    def run():
        try:
            while not stop.is_set():
                body()
        except Exception as error:
            wrong.append(repr(error))
    return run

def call():
    y = net(x).asnumpy()
    calls.append(1)
    if not any((y == e).all() for e in expected):
        wrong.append("an answer of neither")

def look():
    for name in large:
        bits = param(net, name).asnumpy().view("u4")
        if not any((bits == v.view("u4")).all() for v in (values[name], other[name])):
            wrong.append(name + " is neither")

for turn in range(12):
    stop.clear()
    net = load()
    threads = [threading.Thread(target=guarded(body)) for body in (call, call, look)]
    for thread in threads:
        thread.start()
    for which in (other, values):
        net.collect_params()["dense_weight"].set_data(mx.nd.array(which["dense_weight"]))
        net(x).asnumpy()
    stop.set()
    for thread in threads:
        thread.join()
print(json.dumps([wrong[:3], len(calls)]))
""",
    )
    assert not wrong
    assert calls > 24


def test_memory_that_another_library_has_the_address_of_stays(mx, tmp_path: Path) -> None:
    grown, view, written = child(
        tmp_path,
        """
net = load()
before = used()
view = np.from_dlpack(param(net, "dense_weight"))
net(x).asnumpy()
grown = used() - before
same_view = bool((view.view("u4") == values["dense_weight"].view("u4")).all())
late = load()
late(x).asnumpy()
used()
later = np.from_dlpack(param(late, "dense_weight"))
late(x).asnumpy()
used()
print(json.dumps([grown, same_view, bool((later.view("u4") == values["dense_weight"].view("u4")).all())]))
""",
    )
    assert grown > 14 * MIB, "packed beside it"
    assert view and written


def test_two_models_on_the_same_arrays_and_a_saved_one(mx, tmp_path: Path) -> None:
    equal, same, saved = child(
        tmp_path,
        """
net = load()
first = net(x).asnumpy()
used()
twin = mx.gluon.SymbolBlock(mx.sym.load(folder + "/net-symbol.json"), [mx.sym.var("data")], params=net.collect_params())
second = twin(x).asnumpy()
used()
net.export(folder + "/again")
again = mx.nd.load(folder + "/again-0000.params")
saved = [bool((v.asnumpy().view("u4") == values[k.split(":")[1]].view("u4")).all()) for k, v in again.items()]
del net
print(json.dumps([bool((first == second).all()), [same(twin, n) for n in large], saved]))
""",
    )
    assert equal
    assert all(same)
    assert len(saved) == 7 and all(saved)


def test_beyond_the_memory_limit_the_reader_alone_gets_the_error(mx, tmp_path: Path) -> None:
    text, answered, same = child(
        tmp_path,
        """
net = load()
first = net(x).asnumpy()
mx.set_memory_limit(used() + (4 << 20))
try:
    param(net, "dense_weight").asnumpy()
    text = ""
except MemoryError as error:
    text = str(error)
answered = bool((net(x).asnumpy() == first).all())
mx.set_memory_limit(None)
print(json.dumps([text, answered, same(net, "dense_weight")]))
""",
    )
    assert "limit" in text and str(16 * MIB) in text
    assert answered and same


def test_weights_that_only_a_loop_reads_are_released_as_well(mx, tmp_path: Path) -> None:
    loaded, packed, same, again = child(
        tmp_path,
        """
def loop():
    weight = mx.sym.var("dense_weight")
    step = lambda row, s: (mx.sym.FullyConnected(row, weight, num_hidden=1024, no_bias=True), s)
    y, _ = mx.sym.contrib.foreach(step, mx.sym.var("data"), [])
    mx.nd.save(folder + "/loop-0000.params", {"arg:dense_weight": mx.nd.array(values["dense_weight"])})
    y.save(folder + "/loop-symbol.json")
    return mx.gluon.SymbolBlock.imports(folder + "/loop-symbol.json", ["data"], folder + "/loop-0000.params")

rows = mx.nd.array(np.random.RandomState(2).rand(2, 1, 4096).astype("float32"))
before = used()
net = loop()
loaded = used() - before
answer = net(rows).asnumpy()
packed = used() - before
right = same(net, "dense_weight")
print(json.dumps([loaded, packed, right, bool((net(rows).asnumpy() == answer).all())]))
""",
    )
    assert loaded > 15 * MIB
    assert packed < 1.5 * loaded, "one copy of the weights"
    assert same and again
