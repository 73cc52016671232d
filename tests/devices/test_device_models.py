"""Models on devices: calls, parameters, and the bits of the CPU.

The devices of this process have threads and do their work at once. Children are given other kinds
of engine, devices whose work waits until a thread asks for a result (``MXRT_SIM_MODE=scheduled``),
or whose order a seed decides.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from support import ASYNC, DEVICE_KIND, DIGITS, MODELS, ROOT, last_json, run, run_python

SMALL_MODELS = sorted(path.parent.name for path in MODELS.glob("*/meta.json"))


def device_models(kind: str, seeds: int, names: list[str], *options: str, **env: str) -> dict:
    program = str(ROOT / "tests" / "devices" / "device_models.py")
    command = [sys.executable, program, "--seeds", str(seeds), *options, *names]
    return last_json(run(command, 300, {"MXNET_ENGINE_TYPE": kind, **env}))


@pytest.mark.timeout(320)
@pytest.mark.parametrize("kind", ASYNC)
@pytest.mark.parametrize("wanted", ["digits_cnn half_cnn module_mlp transformer wide_deep", "ssd_digits"])
def test_models_give_the_hosts_bits_whatever_the_order(mx, wanted: str, kind: str) -> None:
    """8 threads over two devices, several orders of the work, and every operator by itself."""
    names = [name for name in SMALL_MODELS if (name == "ssd_digits") == (wanted == "ssd_digits")]
    found = device_models(kind, 4, names)
    assert found["engine"] == kind
    there = [model for model in found["models"] if "calls" in model]
    assert {model["model"] for model in there} >= set(wanted.split())
    for model in there:
        assert model["calls"] >= 4 * 8 and model["nodes"] > 0, model
        assert model["pairs"] > 100 or DEVICE_KIND != "sim", model
        assert model["violations"] == [], model


@pytest.mark.timeout(320)
@pytest.mark.parametrize("kind", ASYNC)
def test_a_full_size_network_gives_the_hosts_bits(mx, resnet18: Path, kind: str) -> None:
    found = device_models(kind, 8, ["zoo/resnet18_v1"], "--zoo-dir", str(resnet18))
    (model,) = found["models"]
    assert model["calls"] == 64 and model["nodes"] > 60 and model["violations"] == []


def test_sixteen_threads_share_the_memory_of_a_device(mx) -> None:
    found = device_models(
        ASYNC[0], 10, ["transformer"], "--threads", "16", MXRT_SIM_MODE="threaded", MXRT_SIM_DELAY_US="50"
    )
    assert found["models"][0]["calls"] >= 16 * 20


def test_an_engine_that_forgot_its_events_would_be_noticed(mx) -> None:
    """Devices that ignore waits give wrong values, or work that nothing orders, in the same run."""
    if DEVICE_KIND != "sim":
        pytest.skip("needs the controls of simulated devices")
    command = [sys.executable, str(ROOT / "tests" / "devices" / "device_models.py"), "--seeds", "5", "transformer"]
    done = run(command, 120, {"MXNET_ENGINE_TYPE": ASYNC[0], "MXRT_SIM_IGNORE_WAITS": "1"})
    assert done.returncode != 0 or last_json(done)["models"][0]["violations"]


def test_module_and_executor_on_a_device(mx, sim) -> None:
    prefix = MODELS / "module_mlp" / "module_mlp"
    symbol, arguments, states = mx.model.load_checkpoint(str(prefix), 5)
    with np.load(MODELS / "module_mlp" / "golden.npz") as golden:
        batch = golden["b16.in.data"]
    answers = []
    for ctx in (mx.cpu(), sim):
        module = mx.mod.Module(symbol, label_names=["softmax_label"], context=ctx)
        module.bind(data_shapes=[("data", batch.shape)], for_training=False)
        module.set_params(arguments, states)
        module.forward(mx.io.DataBatch([mx.nd.array(batch)], None), is_train=False)
        (out,) = module.get_outputs()
        assert out.context == ctx
        given = {"data": mx.nd.array(batch, ctx=ctx), "softmax_label": mx.nd.zeros((16,), ctx=ctx)}
        given.update({name: value.as_in_context(ctx) for name, value in arguments.items()})
        held = {name: value.as_in_context(ctx) for name, value in states.items()}
        (again,) = symbol.bind(ctx, given, aux_states=held).forward()
        predicted = module.predict(mx.io.NDArrayIter(batch, batch_size=5))
        answers.append([a.asnumpy().tobytes() for a in (out, again, predicted)])
    assert answers[0] == answers[1] and answers[0][0] == answers[0][1]


def test_parameters_move_between_contexts(mx, sim) -> None:
    net = mx.gluon.SymbolBlock.imports(f"{DIGITS}/digits_cnn-symbol.json", ["data"], f"{DIGITS}/digits_cnn-0000.params")
    with np.load(DIGITS / "golden.npz") as golden:
        batch = golden["b3.in.data"]
    wanted = net(mx.nd.array(batch)).asnumpy()
    for contexts in ([sim], [mx.sim(1), mx.cpu()], [mx.cpu(), sim, mx.sim(1)]):
        net.collect_params().reset_ctx(contexts)
        for ctx in contexts:
            assert net(mx.nd.array(batch, ctx=ctx)).asnumpy().tobytes() == wanted.tobytes(), ctx
    assert "measured" in net.plan(mx.nd.array(batch, ctx=sim))


@pytest.mark.parametrize("kind", ASYNC)
def test_an_update_of_all_parameters_is_seen_whole_or_not_at_all(kind: str) -> None:
    done = run_python(
        """
        import os, threading, numpy as np, mxrt as mx
        sim = mx.sim(0)
        data = mx.sym.var("data")
        out = data
        for n in range(12):
            out = mx.sym.FullyConnected(out, num_hidden=8, no_bias=True, name=f"fc{n}")
        net = mx.gluon.SymbolBlock(out, data)
        net.collect_params().initialize(ctx=sim)
        x = mx.nd.ones((1, 8), ctx=sim)
        net(x)
        files = []
        for scale in (0.25, 0.125):
            values = {f"fc{n}_weight": mx.nd.full((8, 8), scale) for n in range(12)}
            mx.nd.save(f"update-{os.getpid()}-{scale}.params", values)
            files.append(f"update-{os.getpid()}-{scale}.params")
        net.load_parameters(files[0], ctx=sim)
        allowed = {2.0 ** 12, 1.0}
        weights = net.collect_params()
        seen, wrong, stop = set(), [], threading.Event()

        def call():
            while not stop.is_set():
                value = set(net(x).asnumpy().ravel().tolist())
                seen.update(value)
                if len(value) != 1 or not value <= allowed:
                    wrong.append(value)

        threads = [threading.Thread(target=call) for _ in range(8)]
        [t.start() for t in threads]
        for n in range(2000):
            net.load_parameters(files[(n + 1) % 2], ctx=sim)
            if n % 3 == 0:  # else calls wait behind hundreds of updates
                weights["fc11_weight"].data(sim).wait_to_read()
            if n > 60 and seen == allowed:
                break
        stop.set()
        [t.join() for t in threads]
        [os.remove(file) for file in files]
        weights["fc3_weight"].set_data(mx.nd.zeros((8, 8)))
        print(wrong[:3], seen == allowed, net(x).asnumpy().max())
        """,
        env={"MXNET_ENGINE_TYPE": kind, "MXRT_SIM_DELAY_US": "20"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[] True 0.0", 0, "")
