"""Calls of graphs on GPUs as CUDA graphs, on a machine without a GPU: the stand-in for the CUDA
driver (crates/cuda-standin) counts their launches, and aborts the process if two of one run at a
time or if one is freed too early.
"""

from __future__ import annotations

import os

import pytest

from support import ASYNC, run_python

pytestmark = pytest.mark.skipif("MXRT_TEST_DEVICES" in os.environ, reason="the others of this run are children of it")

#: A network of constants, an index into a table, and two products; and what the tests look at.
NETWORK = """
import ctypes, threading, numpy as np, mxrt as mx

def graphs():
    launches = ctypes.c_size_t()
    ctypes.CDLL("libcuda.so.1").mxrt_standin_graph_launches(ctypes.byref(launches))
    return launches.value

words, image = mx.sym.var("words"), mx.sym.var("image")
rows = mx.sym.Embedding(words, input_dim=6, output_dim=4, name="table")
product = mx.sym.FullyConnected(image, num_hidden=4, name="fc")
both = mx.sym.softmax(mx.sym.broadcast_add(rows, mx.sym.relu(product)))
net = mx.sym.Group([both, product * 2])
numbers = np.random.default_rng(5)
values = {"table_weight": (6, 4), "fc_weight": (4, 3), "fc_bias": (4,)}
values = {name: numbers.standard_normal(shape).astype("f4") for name, shape in values.items()}

def block(ctx):
    made = mx.gluon.SymbolBlock(net, [words, image])
    for name, parameter in made.collect_params().items():
        parameter._load_init(mx.nd.array(values[name]), [ctx])
    return made

def call(made, number, ctx):
    at = np.array([number % 6, (number + 2) % 6], "f4")
    given = [mx.nd.array(at, ctx=ctx), mx.nd.array(np.full((2, 3), number, "f4"), ctx=ctx)]
    return made(*given)

def answer(made, number, ctx):
    return [one.asnumpy() for one in call(made, number, ctx)]

def near(found, wanted):
    return all(np.abs(a - b).max() <= 1e-5 * np.abs(b).max() for a, b in zip(found, wanted, strict=True))

gpu = mx.gpu(0)
there, here = block(gpu), block(mx.cpu())
"""


def check(gpus: dict[str, str], code: str, **env: str) -> None:
    """Runs code after `NETWORK`; it prints `done`."""
    variables = {**gpus, "STANDIN_DELAY_US": "200", "MXNET_ENGINE_TYPE": ASYNC[0], **env}
    done = run_python(NETWORK + code + '\nprint("done")', env=variables)
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, ""), done.stderr


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", "NaiveEngine", *ASYNC])
def test_later_calls_are_one_launch_each(kind: str, gpus) -> None:
    check(
        gpus,
        """
for number in range(8):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert graphs() == 7, graphs()
""",
        MXNET_ENGINE_TYPE=kind,
    )


@pytest.mark.parametrize("recordings", ["0", "1", "4"])
def test_threads_have_the_bits_of_calls_one_by_one(recordings: str, gpus) -> None:
    check(
        gpus,
        f"""
wanted = [answer(there, number, gpu) for number in range(12)]
before, wrong = graphs(), []

def work(thread):
    for number in range(thread, thread + 24):
        found = answer(there, number % 12, gpu)
        if not all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted[number % 12])):
            wrong.append((thread, number))

threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong[:4]
assert graphs() - before == ({recordings} > 0) * 16 * 24, graphs() - before
""",
        MXRT_GPU_RECORDINGS=recordings,
    )


@pytest.mark.parametrize("recordings", ["0", "4"])
def test_bits_do_not_depend_on_where_data_begins(recordings: str, gpus) -> None:
    """A view that begins between pieces of 16 bytes, as data, as a parameter and as a result."""
    code = """
wide = mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("w"), num_hidden=64, no_bias=True)
wide = mx.sym.softmax(wide)
# Small, so that softmax keeps what the products differ in.
values = mx.nd.array(0.1 * numbers.standard_normal(1 + 64 * 640), ctx=gpu)
x, w = values[1 : 1 + 8 * 640].reshape((8, 640)), values[1:].reshape((64, 640))
results = set()
for a, b in ((x, w), (x.copy(), w), (x, w.copy()), (x.copy(), w.copy())):
    plan = mx.nd.CachedOp(wide)
    for _ in range(4):
        results.add(plan(a, b).asnumpy().tobytes())
    single = mx.nd.softmax(mx.nd.FullyConnected(a, b, num_hidden=64, no_bias=True))
    results.add(single.asnumpy().tobytes())
flat = mx.nd.zeros((1 + 8 * 64,), ctx=gpu)
single = mx.nd.softmax(mx.nd.FullyConnected(x, w, num_hidden=64, no_bias=True), out=flat[1:].reshape((8, 64)))
results.add(flat.asnumpy()[1:].tobytes())
assert flat.asnumpy()[0] == 0
assert len(results) == 1, len(results)
"""
    check(gpus, code, MXRT_GPU_RECORDINGS=recordings)


def test_a_written_parameter_and_a_new_one_are_seen(gpus) -> None:
    check(
        gpus,
        """
def both_agree(number):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number

both_agree(1), both_agree(2)
for factor in (2, 3):
    for made, ctx in ((there, gpu), (here, mx.cpu())):
        data = made.collect_params()["fc_weight"].data(ctx)
        data[:] = data * factor
    both_agree(3), both_agree(4)
for made in (there, here):
    made.collect_params()["table_weight"].set_data(mx.nd.ones((6, 4)))
for number in range(5):
    both_agree(number)
assert graphs() >= 5, graphs()
""",
    )


def test_what_a_kernel_says_of_its_data_fails_that_call_alone(gpus) -> None:
    check(
        gpus,
        """
x = mx.sym.take(mx.sym.var("a"), mx.sym.var("at"), mode="raise", name="picked")
results = mx.sym.Group([x * 2, mx.sym.var("a") + 1])
op, names = mx.nd.CachedOp(results), results.list_inputs()

def pick(at):
    given = {"a": mx.nd.array([1, 2, 3], ctx=gpu), "at": mx.nd.array(at, ctx=gpu)}
    return op(*[given[name] for name in names])

for turn in range(4):
    good, bad = pick([0, 2]), pick([0, 7])
    assert good[0].asnumpy().tolist() == [2, 6]
    assert bad[1].asnumpy().tolist() == [2, 3, 4], "what does not depend on the index"
    try:
        bad[0].asnumpy()
        raise SystemExit("no error")
    except mx.base.MXNetError as error:
        assert "take 'picked': index 7 is out of range" in str(error), error
assert graphs() == 7, graphs()
""",
    )


def test_numbers_that_are_drawn_are_not_recorded(gpus) -> None:
    check(
        gpus,
        """
noise = mx.sym.random_uniform(shape=(8,), name="u") + mx.sym.var("a")
op = mx.nd.CachedOp(noise)
a = mx.nd.zeros((8,), ctx=gpu)
drawn = [op(a)[0] if isinstance(op(a), list) else op(a) for _ in range(4)]
drawn = {one.asnumpy().tobytes() for one in drawn}
assert len(drawn) == 4 and graphs() == 0, (len(drawn), graphs())
""",
    )


def test_a_lost_gpu_fails_the_calls_on_it(gpus) -> None:
    check(
        gpus,
        """
outcomes = []
for number in range(40):
    try:
        answer(there, number, gpu)
        outcomes.append("right")
    except mx.base.MXNetDeviceError as error:
        assert "gpu(0) is lost: CUDA error 719" in str(error), error
        outcomes.append("lost")
first = outcomes.index("lost")
assert first > 1 and set(outcomes[first:]) == {"lost"}, outcomes
assert graphs() >= first - 1
other = block(mx.gpu(1))
for number in range(3):
    assert near(answer(other, number, mx.gpu(1)), answer(here, number, mx.cpu()))
try:
    mx.nd.waitall()
except mx.base.MXNetDeviceError:
    pass
""",
        STANDIN_FAULTS="execute:60:719",
    )


def test_a_driver_that_makes_no_graphs_gets_the_kernels_one_by_one(gpus) -> None:
    check(
        gpus,
        """
for number in range(6):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert graphs() == 0
mx.nd.waitall()
""",
        STANDIN_GRAPHS="801",
    )


def test_memory_of_recordings_is_given_up(gpus) -> None:
    check(
        gpus,
        """
x = mx.sym.var("x")
op = mx.nd.CachedOp(mx.sym.exp(mx.sym.sort(mx.sym.sin(x), axis=0)))

def sorted_sines():
    given = mx.nd.array(np.arange(100_000), ctx=gpu)
    made = op(given)
    return made.asnumpy().copy()

wanted = sorted_sines()
mx.nd.waitall()
before, peak = (gpu.memory_info()[name] for name in ("in_use", "peak"))
assert (sorted_sines() == wanted).all() and graphs() == 1
mx.nd.waitall()
held = gpu.memory_info()["in_use"] - before
assert held >= 3 * 400_000, held
gpu.empty_cache()
assert gpu.memory_info()["in_use"] <= before
# One that is in use stays until it is not.
made = op(mx.nd.array(np.arange(100_000), ctx=gpu))
gpu.empty_cache()
assert (made.asnumpy() == wanted).all() and graphs() == 2
del made
mx.nd.waitall()
gpu.empty_cache()
assert (sorted_sines() == wanted).all() and graphs() == 3
mx.nd.waitall()
# No memory for a recording: the kernels are submitted one by one, and it is tried again later, for
# each attempt frees the memory that others could take from the pool.
gpu.empty_cache()
gpu.set_memory_limit(peak)
assert (sorted_sines() == wanted).all() and graphs() == 3
gpu.set_memory_limit(None)
for _ in range(12):
    assert (sorted_sines() == wanted).all()
assert 5 <= graphs() <= 8, graphs()
""",
    )


def test_recordings_that_were_given_up_are_made_again(gpus) -> None:
    check(
        gpus,
        """
op = mx.nd.CachedOp(mx.sym.relu(mx.sym.sort(mx.sym.var("x"))) + 1)
x = mx.nd.ones((4, 4), ctx=gpu)
op(x)
for turn in range(80):
    assert op(x).asnumpy().sum() == 32 and graphs() == turn + 1, turn
    mx.nd.waitall()
    gpu.empty_cache()
""",
    )


def test_parameters_that_always_move_are_not_recorded_at_every_call(gpus) -> None:
    check(
        gpus,
        """
answer(there, 0, gpu)
kept = []
for number in range(400):
    kept.append(there.collect_params()["fc_weight"].data(gpu))
    there.collect_params()["fc_weight"]._load_init(mx.nd.array(values["fc_weight"]), [gpu])
    answer(there, number, gpu)
moving = graphs()
assert 64 <= moving < 120, moving
for number in range(200):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert graphs() > moving + 100, (moving, graphs())
""",
    )


def test_an_error_while_recording_does_not_end_graphs_for_good(gpus) -> None:
    check(
        gpus,
        """
import os
answer(there, 0, gpu)
os.environ["STANDIN_GRAPHS"] = "801"
for number in range(3):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert graphs() == 0
del os.environ["STANDIN_GRAPHS"]
for number in range(64):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert graphs() >= 40, graphs()
""",
    )


def test_large_calls_are_recorded_if_launching_takes_longer_than_copying(gpus) -> None:
    check(
        gpus,
        """
def sorts(number):
    made = mx.sym.slice(mx.sym.var("x"), begin=(0,), end=(4,))
    for _ in range(number):
        made = mx.sym.sort(made)
    return mx.nd.CachedOp(made)

x = mx.nd.ones((6 << 20,), ctx=gpu)  # a recorded call copies 24 MiB
for number, wanted in ((0, 0), (5, 2)):
    op, before = sorts(number), graphs()
    for _ in range(3):
        assert op(x).asnumpy().tolist() == [1] * 4
    assert graphs() - before == wanted, (number, graphs() - before)
""",
    )


def test_the_process_ends_while_graphs_run(gpus) -> None:
    check(
        gpus,
        """
kept = [call(there, number, gpu) for number in range(30)]
assert graphs() == 29
""",
        STANDIN_DELAY_US="20000",
    )


@pytest.mark.parametrize("kind", ["NaiveEngine", "ThreadedEnginePerDevice", *ASYNC])
def test_another_library_captures_meanwhile(kind: str, gpus) -> None:
    """PyTorch forbids all threads of the process calls that might wait, and breaks by them."""
    check(
        gpus,
        """
driver, forbidden = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
answer(there, 0, gpu)
driver.mxrt_standin_foreign_capture(1, ctypes.byref(forbidden))
for number in range(8):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
held = [mx.nd.ones((1 << number,), ctx=gpu) for number in range(20)]
del held
mx.nd.waitall()
gpu.empty_cache()
assert near(answer(block(gpu), 3, gpu), answer(here, 3, mx.cpu()))
mx.nd.waitall()
driver.mxrt_standin_foreign_capture(0, ctypes.byref(forbidden))
assert forbidden.value == 0, forbidden.value
""",
        MXNET_ENGINE_TYPE=kind,
    )


def test_every_gpu_has_recordings_and_constants_of_its_own(gpus) -> None:
    """Without parameters nothing else tells the calls on two GPUs apart."""
    check(
        gpus,
        """
x = mx.sym.var("x")
plans = {
    "constants": (mx.sym.broadcast_add(x, mx.sym.arange(start=0, stop=4)), lambda v: v + np.arange(4)),
    "none": (mx.sym.relu(x * 2 + 1), lambda v: np.maximum(v * 2 + 1, 0)),
}
for name, (symbol, wanted) in plans.items():
    op, before = mx.nd.CachedOp(symbol), graphs()
    for turn in range(4):
        for number in (0, 1):
            given = np.array([[turn, -number, 2, 3]], "f4")
            found = op(mx.nd.array(given, ctx=mx.gpu(number)))
            assert found.context == mx.gpu(number)
            assert (found.asnumpy() == wanted(given)).all(), (name, turn, number)
    assert graphs() - before == 2 * 3, (name, graphs() - before)
""",
    )


def test_limits_of_recordings_are_those_of_one_gpu(gpus) -> None:
    check(
        gpus,
        """
op = mx.nd.CachedOp(mx.sym.relu(mx.sym.sort(mx.sym.var("x"))) + 1)
given = [mx.nd.ones((256, 256), ctx=mx.gpu(number)) for number in (0, 1)]
for turn in range(3):
    [op(x).wait_to_read() for x in given]
mx.nd.waitall()
held = [mx.gpu(number).memory_info()["in_use"] for number in (0, 1)]
# What one GPU gives up is its own.
mx.gpu(0).empty_cache()
now = [mx.gpu(number).memory_info()["in_use"] for number in (0, 1)]
assert now[0] < held[0] and now[1] == held[1], (held, now)
""",
        MXRT_GPU_RECORDINGS="1",
    )


def test_an_argument_that_was_never_written_leaves_graphs_on(gpus) -> None:
    check(
        gpus,
        """
data, label = mx.sym.var("data"), mx.sym.var("softmax_label")
symbol = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(data, num_hidden=4, name="fc"), label, name="softmax")
given = np.ones((2, 3), "f4")
exe = symbol.simple_bind(ctx=gpu, data=given.shape, grad_req="null")
exe.copy_params_from({name: mx.nd.array(values[name]) for name in ("fc_weight", "fc_bias")})
for number in range(4):
    exe.forward(data=mx.nd.array(given * number))
    logits = number * given @ values["fc_weight"].T + values["fc_bias"]
    wanted = np.exp(logits - logits.max(1, keepdims=True))
    assert near([exe.outputs[0].asnumpy()], [wanted / wanted.sum(1, keepdims=True)]), number
assert graphs() == 3, graphs()
""",
    )


def test_a_parameter_without_a_value_is_copied_until_it_has_one(gpus) -> None:
    check(
        gpus,
        """
made = mx.sym.relu(mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.var("b")) * 2) + 1
exe = made.simple_bind(ctx=gpu, x=(2, 4), b=(4,), grad_req="null")

def forward():
    exe.forward(x=mx.nd.ones((2, 4)))
    return exe.outputs[0].asnumpy()

for _ in range(3):
    assert (forward() == 3).all()
assert graphs() == 2, graphs()
exe.copy_params_from({"b": mx.nd.array([0, 1, 2, -3])})
for _ in range(3):
    assert (forward() == [[3, 5, 7, 1]] * 2).all()
assert graphs() == 5, graphs()
""",
    )


def test_a_launch_without_memory_submits_the_kernels_one_by_one(gpus) -> None:
    check(
        gpus,
        """
import os
for number in range(3):
    answer(there, number, gpu)
before = graphs()
assert before == 2
os.environ["STANDIN_GRAPH_LAUNCHES"] = "2"
for number in range(4):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert graphs() == before
del os.environ["STANDIN_GRAPH_LAUNCHES"]
for number in range(40):
    assert near(answer(there, number, gpu), answer(here, number, mx.cpu())), number
assert 20 <= graphs() - before < 40, graphs() - before
""",
    )
