"""Libraries of NVIDIA in place of kernels, on a machine without a GPU: the stand-in for the CUDA
driver (crates/cuda-standin) is cuBLASLt and cuDNN too, under other names, and computes on the host.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from support import ASYNC, mxrt, run_python, with_libraries

pytestmark = pytest.mark.skipif("MXRT_TEST_DEVICES" in os.environ, reason="the others of this run are children of it")

CUBLASLT = {"MXRT_GPU_LIBRARIES": "cublaslt"}

#: Products of all forms, and what the tests look at.
PRODUCTS = """
import ctypes, threading, numpy as np, mxrt as mx

gpu, numbers = mx.gpu(0), np.random.default_rng(7)

def graphs():
    launches = ctypes.c_size_t()
    ctypes.CDLL("libcuda.so.1").mxrt_standin_graph_launches(ctypes.byref(launches))
    return launches.value

def values(*shape):
    return numbers.uniform(-1, 1, shape)

def block(symbol, parameters, ctx, dtype="float32", **options):
    made = mx.gluon.SymbolBlock(symbol, [mx.sym.var("x")])
    for name, parameter in made.collect_params().items():
        parameter.cast(dtype)
        parameter._load_init(mx.nd.array(parameters[name], dtype=dtype), [ctx])
    made.hybridize(**options)
    return made

def layers(dtype="float32"):
    # Two layers of the same shape, and one of another.
    y = mx.sym.var("x")
    for name, width in (("one", 24), ("two", 24), ("three", 8)):
        y = mx.sym.FullyConnected(y, num_hidden=width, name=name)
        y = mx.sym.relu(y) if name != "three" else y
    shapes = {"one": (24, 24), "two": (24, 24), "three": (8, 24)}
    parameters = {f"{name}_weight": values(*shape) / 3 for name, shape in shapes.items()}
    parameters |= {f"{name}_bias": values(shape[0]) for name, shape in shapes.items()}
    return y, parameters

def near(found, wanted, tolerance=1e-5):
    return np.abs(found.astype("f8") - wanted).max() <= tolerance * np.abs(wanted).max()
"""


def calls(env: dict[str, str]) -> list[str]:
    """The calls of libraries in the last child."""
    path = Path(env["STANDIN_LIBRARY_CALLS"])
    return path.read_text().splitlines() if path.exists() else []


def check(env: dict[str, str], code: str, timeout: float = 120) -> None:
    """Runs code after `PRODUCTS`; it prints `done`."""
    done = run_python(PRODUCTS + code + '\nprint("done")', env={"STANDIN_DELAY_US": "50", **env}, timeout=timeout)
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, ""), done.stderr


def refused(env: dict[str, str], code: str = "mx.nd.ones((2, 2), ctx=gpu) + 1") -> str:
    """The error of a call on a GPU, which is the same at the next one; the CPU keeps working."""
    text = f"""
for _ in range(2):
    try:
        ({code}).asnumpy()
        raise SystemExit("no error")
    except mx.base.MXNetDeviceError as error:
        said = str(error)
assert (mx.nd.ones((2, 2)) + 1).asnumpy().tolist() == [[2, 2], [2, 2]]
print(said)
"""
    done = run_python(PRODUCTS + text, env={"STANDIN_DELAY_US": "0", **env})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def cublaslt(gpus, tmp_path: Path) -> dict[str, str]:
    """Variables for a child that computes products by cuBLASLt."""
    return {**with_libraries(gpus, tmp_path / "nvidia", "libcublasLt.so.13"), **CUBLASLT}


@pytest.fixture
def cudnn(gpus, tmp_path: Path) -> dict[str, str]:
    """Variables for a child that computes convolutions by cuDNN."""
    return {**with_libraries(gpus, tmp_path / "nvidia", "libcudnn.so.9"), "MXRT_GPU_LIBRARIES": "cudnn"}


FORMS = """
def forms(ctx, dtype):
    take = lambda *shape: mx.nd.array(values(*shape), ctx=ctx, dtype=dtype)
    a, b, bt, at = take(5, 7), take(7, 9), take(9, 7), take(7, 5)
    yield mx.nd.dot(a, b)
    yield mx.nd.dot(a, bt, transpose_b=True)
    yield mx.nd.dot(at, b, transpose_a=True)
    yield mx.nd.dot(at, bt, transpose_a=True, transpose_b=True)
    for left, right in (((3, 5, 7), (3, 7, 9)), ((3, 7, 5), (3, 9, 7)), ((1, 5, 7), (1, 7, 9))):
        swapped = left[1] == 7
        yield mx.nd.batch_dot(take(*left), take(*right), transpose_a=swapped, transpose_b=swapped)
    yield mx.nd.linalg.gemm2(take(2, 3, 4, 6), take(2, 3, 6, 5), alpha=0.5)
    yield mx.nd.linalg.gemm(take(4, 6), take(6, 5), take(4, 5), alpha=2.0, beta=-1.5)
    yield mx.nd.FullyConnected(take(6, 8), take(10, 8), take(10), num_hidden=10)
    yield mx.nd.FullyConnected(take(1, 8), take(10, 8), num_hidden=10, no_bias=True)
    yield mx.nd.FullyConnected(take(6, 1), take(1, 1), take(1), num_hidden=1)
    yield mx.nd.contrib.interleaved_matmul_selfatt_qk(take(6, 2, 4 * 3 * 8), heads=4)
    # No elements, and no depth.
    with mx.util.np_shape(True):
        yield mx.nd.dot(mx.nd.zeros((2, 0), ctx=ctx, dtype=dtype), mx.nd.zeros((0, 3), ctx=ctx, dtype=dtype))
        yield mx.nd.dot(mx.nd.zeros((0, 2), ctx=ctx, dtype=dtype), take(2, 3))

def answers(ctx, dtype):
    global numbers
    numbers = np.random.default_rng(7)
    return [one.asnumpy() for one in forms(ctx, dtype)]

for dtype, tolerance in (("float32", 1e-5), ("float16", 2e-3), ("float64", 1e-12)):
    for n, (found, wanted) in enumerate(zip(answers(gpu, dtype), answers(mx.cpu(), dtype), strict=True)):
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        assert found.size == 0 or np.abs(found - wanted).max() <= tolerance * 4, (dtype, n, found, wanted)
"""


def test_products_of_all_forms_are_those_of_the_cpu(cublaslt) -> None:
    check(cublaslt, FORMS)
    counted = Counter(line.split()[0] for line in calls(cublaslt))
    # 13 of float32 and of float16 have elements and a depth, two of them the same ones; float64 has
    # kernels of mxrt.
    assert counted == {"create": 1, "choose": 24, "multiply": 26}


def test_nothing_is_opened_without_the_setting(gpus, tmp_path: Path) -> None:
    env = with_libraries(gpus, tmp_path / "nvidia", "libcublasLt.so.13")
    check(env, FORMS)
    assert calls(env) == []


PLAN = """
symbol, parameters = layers()
x = values(6, 24)
here = block(symbol, parameters, mx.cpu())(mx.nd.array(x)).asnumpy()
there = block(symbol, parameters, gpu)
given = mx.nd.array(x, ctx=gpu)
found = [there(given).asnumpy() for _ in range(6)]
assert all(near(one, here) for one in found) and len({one.tobytes() for one in found}) == 1
"""


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", "NaiveEngine", *ASYNC])
def test_a_plan_asks_once_for_each_shape_and_its_calls_are_recorded(kind: str, cublaslt) -> None:
    check({**cublaslt, "MXNET_ENGINE_TYPE": kind}, PLAN + "\nassert graphs() == 5, graphs()")
    # The second call makes the graph of the others: bias and the positive part are in the product.
    wanted = ["create", "choose Single 24x6x24 * 1", "multiply", "multiply", "choose Single 8x6x24 * 1", "multiply"]
    assert calls(cublaslt) == [*wanted, "multiply", "multiply", "multiply"]


def test_calls_that_are_not_recorded_have_the_same_bits(cublaslt) -> None:
    code = """
wanted = found[0].tobytes()
assert graphs() == 0 and there(given).asnumpy().tobytes() == wanted
"""
    check({**cublaslt, "MXRT_GPU_RECORDINGS": "0"}, PLAN + code)
    assert calls(cublaslt).count("multiply") == 3 * 7


def test_threads_and_devices_have_the_bits_of_calls_one_by_one(cublaslt) -> None:
    code = """
wrong = []
def work(number):
    ctx = mx.gpu(number % 2)
    made = block(symbol, parameters, ctx) if number < 2 else [there, other][number % 2]
    for _ in range(12):
        if made(mx.nd.array(x, ctx=ctx)).asnumpy().tobytes() != found[0].tobytes():
            wrong.append(number)
other = block(symbol, parameters, mx.gpu(1))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong
"""
    check(cublaslt, PLAN + code)
    # One handle and one choice for each GPU.
    counted = Counter(line for line in calls(cublaslt) if line != "multiply")
    assert counted == {"create": 2, "choose Single 24x6x24 * 1": 2, "choose Single 8x6x24 * 1": 2}


def test_half_precision_and_rounded_factors(cublaslt) -> None:
    code = """
symbol, parameters = layers()
x = values(6, 24)
exact = block(symbol, parameters, mx.cpu())(mx.nd.array(x)).asnumpy()
half = block(symbol, parameters, gpu, "float16")(mx.nd.array(x, ctx=gpu, dtype="float16")).asnumpy()
assert near(half, exact, 1e-2)
brain = block(symbol, parameters, gpu, precision="bf16")(mx.nd.array(x, ctx=gpu)).asnumpy()
assert near(brain, exact, 3e-2) and not near(brain, exact, 1e-5)
single = block(symbol, parameters, gpu)(mx.nd.array(x, ctx=gpu)).asnumpy()
assert near(single, exact, 1e-5) == (TF32 == "0") and near(single, exact, 5e-3)
"""
    for tf32 in ("0", "1"):
        check({**cublaslt, "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION": tf32}, f'TF32 = "{tf32}"\n' + code)


CONVOLUTIONS = """
#: Filters, groups, and attributes.
SHAPES = [
    (8, 1, {"kernel": (3, 3), "pad": (1, 1)}),
    (16, 2, {"kernel": (3, 1), "stride": (2, 1), "pad": (1, 0)}),
    (6, 3, {"kernel": (3, 3), "dilate": (2, 1), "pad": (0, 2)}),
    (8, 1, {"kernel": (1, 1), "stride": (2, 2)}),
    (12, 12, {"kernel": (3, 3), "pad": (1, 1)}),
]

def single(ctx, dtype):
    take = lambda *shape: mx.nd.array(values(*shape), ctx=ctx, dtype=dtype)
    for filters, groups, attributes in SHAPES:
        given = take(2, 12, 9, 7), take(filters, 12 // groups, *attributes["kernel"]), take(filters)
        yield mx.nd.Convolution(*given, num_filter=filters, num_group=groups, **attributes)
        yield mx.nd.Convolution(*given[:2], num_filter=filters, num_group=groups, no_bias=True, **attributes)
    yield mx.nd.Convolution(take(2, 5, 9), take(4, 5, 3), take(4), num_filter=4, kernel=(3,))

def network():
    # Convolution alone, with an activation, with a residual and one: as in ResNet.
    x, parameters = mx.sym.var("x"), {}
    def layer(data, name, filters, channels, groups=1, **attributes):
        kernel = attributes["kernel"]
        parameters[f"{name}_weight"] = values(filters, channels // groups, *kernel) / 4
        parameters[f"{name}_bias"] = values(filters)
        return mx.sym.Convolution(data, num_filter=filters, num_group=groups, name=name, **attributes)
    a = mx.sym.relu(layer(x, "stem", 8, 3, kernel=(3, 3), stride=(2, 2), pad=(1, 1)))
    b = mx.sym.relu(layer(a, "first", 8, 8, kernel=(3, 3), pad=(1, 1)))
    c = mx.sym.relu(layer(b, "second", 8, 8, kernel=(3, 3), pad=(1, 1)) + a)
    d = layer(mx.sym.Pooling(c, kernel=(2, 2), stride=(2, 2), pool_type="max"), "third", 16, 8, kernel=(1, 1))
    return layer(mx.sym.relu(d), "last", 4, 16, groups=2, kernel=(3, 3)), parameters
"""


def test_convolutions_of_all_forms_are_those_of_the_cpu(cudnn) -> None:
    code = """
def answers(ctx, dtype):
    global numbers
    numbers = np.random.default_rng(7)
    return [one.asnumpy() for one in single(ctx, dtype)]

for dtype, tolerance in (("float32", 1e-5), ("float16", 2e-3), ("float64", 1e-12)):
    for n, (found, wanted) in enumerate(zip(answers(gpu, dtype), answers(mx.cpu(), dtype), strict=True)):
        assert found.shape == wanted.shape and near(found, wanted.astype("f8"), tolerance), (dtype, n)
"""
    check(cudnn, CONVOLUTIONS + code)
    counted = Counter(line.split()[0] + " bias" * ("bias" in line) for line in calls(cudnn))
    assert counted["convolve bias"] == 12 and counted["convolve"] == 10, counted


NETWORK = """
symbol, parameters = network()
x = values(2, 3, 16, 16)
for dtype, tolerance in (("float32", 1e-5), ("float16", 1e-2)):
    here = block(symbol, parameters, mx.cpu())(mx.nd.array(x)).asnumpy()
    there, given = block(symbol, parameters, gpu, dtype), mx.nd.array(x, ctx=gpu, dtype=dtype)
    found = [there(given).asnumpy() for _ in range(5)]
    assert all(near(one, here, tolerance) for one in found), dtype
    assert len({one.tobytes() for one in found}) == 1, dtype
"""


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", "NaiveEngine", *ASYNC])
def test_a_network_of_convolutions_has_channels_last_and_is_recorded(kind: str, cudnn) -> None:
    check({**cudnn, "MXNET_ENGINE_TYPE": kind}, CONVOLUTIONS + NETWORK + "\nassert graphs() == 8, graphs()")
    counted = Counter(" ".join(line.split()[:2]) for line in calls(cudnn))
    # Five layers, two of the same form; two types. The second call makes the graph of the others.
    assert counted["choose last"] == 10 and counted["convolve with"] == 20, counted
    # One handle for the heuristics, some for streams of calls, one for graphs.
    assert 2 <= counted["create cuDNN"] <= 6, counted


def test_threads_share_the_handles_of_streams(cudnn) -> None:
    code = """
wrong = []
def work(number):
    for _ in range(10):
        if there(mx.nd.array(x, ctx=gpu, dtype="float16")).asnumpy().tobytes() != found[0].tobytes():
            wrong.append(number)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong
"""
    for recordings in ("4", "0"):
        check({**cudnn, "MXRT_GPU_RECORDINGS": recordings}, CONVOLUTIONS + NETWORK + code)


def test_what_cudnn_cannot_do_has_kernels(cudnn) -> None:
    code = """
notes = [note for note in str(there.plan(given, measure=False)).splitlines() if note.startswith("gpu(0)")]
print(*notes, sep="; ", file=open(FILE, "a"))
"""
    file = Path(cudnn["STANDIN_LIBRARY_CALLS"]).with_name("notes")
    for function in (None, "Algorithm_v7", "WorkspaceSize"):
        faults = {"STANDIN_LIBRARY_FAULTS": f"cudnnGetConvolutionForward{function}:0+:3000"} if function else {}
        env = {**cudnn, **faults}
        check(env, f"FILE = {str(file)!r}\n" + CONVOLUTIONS + NETWORK + code)
    theirs, *ours = file.read_text().splitlines()
    assert theirs.startswith("gpu(0): cuDNN computes") and "stem" in theirs and "mxrt's" not in theirs, theirs
    for line in ours:
        assert line.startswith("gpu(0): mxrt's kernels, in place of cuDNN, compute") and "stem" in line, line


def test_a_gpu_without_an_algorithm_reads_the_weights_of_another_ones_plan(cudnn) -> None:
    code = """
symbol, parameters = network()
x = values(2, 3, 16, 16)
there = mx.gluon.SymbolBlock(symbol, [mx.sym.var("x")])
for name, parameter in there.collect_params().items():
    parameter._load_init(mx.nd.array(parameters[name]), [gpu, mx.gpu(1)])
here = block(symbol, parameters, mx.cpu())(mx.nd.array(x)).asnumpy()
for ctx in (gpu, mx.gpu(1)):
    for _ in range(3):
        assert near(there(mx.nd.array(x, ctx=ctx)).asnumpy(), here), ctx
"""
    faults = {"STANDIN_LIBRARY_FAULTS": "cudnnGetConvolutionForwardAlgorithm_v7:5+:3000"}
    check({**cudnn, **faults}, CONVOLUTIONS + code)
    # Two calls of five layers on the first GPU, the second of which makes a graph.
    assert sum("convolve" in line for line in calls(cudnn)) == 10


def test_a_convolution_that_fails_is_an_error_of_that_call(cudnn) -> None:
    code = """
errors = []
symbol, parameters = network()
there, given = block(symbol, parameters, gpu), mx.nd.array(values(2, 3, 16, 16), ctx=gpu)
found = []
for _ in range(4):
    try:
        found.append(there(given).asnumpy().tobytes())
    except mx.base.MXNetDeviceError as error:
        errors.append(str(error))
assert len(errors) == 1 and len(found) == 3 and len(set(found)) == 1
assert "cuDNN returned 5000, CUDNN_STATUS_EXECUTION_FAILED" in errors[0] and "Convolution" in errors[0], errors
try:
    mx.nd.waitall()
except mx.base.MXNetDeviceError:
    pass
"""
    faults = {"STANDIN_LIBRARY_FAULTS": "cudnnConvolutionBiasActivationForward:2:5000"}
    check({**cudnn, **faults}, CONVOLUTIONS + code)


def test_cudnn_that_is_absent_too_old_or_broken_is_an_error_that_says_what_to_do(gpus, tmp_path: Path) -> None:
    said = refused({**gpus, "MXRT_GPU_LIBRARIES": "cudnn"})
    assert "names cudnn, and cuDNN cannot be used" in said and "Expected cuDNN 9.0.0 or newer" in said, said
    env = {**with_libraries(gpus, tmp_path / "nvidia", "libcudnn.so.9"), "MXRT_GPU_LIBRARIES": "cudnn"}
    assert "is cuDNN 8.97.0, which is too old" in refused({**env, "STANDIN_CUDNN": "89700"})
    assert "is for CUDA 13, but the driver serves CUDA 12.4" in refused({**env, "STANDIN_VERSION": "12040"})
    faults = {"STANDIN_LIBRARY_FAULTS": "cudnnCreate:0+:1001"}
    assert "no handle: cuDNN returned 1001, CUDNN_STATUS_NOT_INITIALIZED" in refused({**env, **faults})
    # The other library is there.
    both = {**with_libraries(gpus, tmp_path / "both", "libcublasLt.so.13"), "MXRT_GPU_LIBRARIES": "cublaslt,cudnn"}
    assert "names cudnn" in refused(both)


def test_what_the_library_cannot_do_has_kernels_and_the_plan_says_so(cublaslt) -> None:
    code = """
y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=24, name="plain")
y = mx.sym.LeakyReLU(mx.sym.FullyConnected(y, num_hidden=8, name="leaky"), slope=0.125)
parameters = {"plain_weight": values(24, 24), "plain_bias": values(24), "leaky_weight": values(8, 24)}
parameters |= {"leaky_bias": values(8)}
x = values(6, 24)
there, given = block(y, parameters, gpu), mx.nd.array(x, ctx=gpu)
notes, unmeasured = (str(there.plan(given, measure=measure)).splitlines() for measure in (True, False))
assert {note for note in notes if "gpu(0)" in note} == {note for note in unmeasured if "gpu(0)" in note}
print(*[note for note in notes if note.startswith("gpu(0)")], sep="; ", file=open(FILE, "a"))
assert near(there(given).asnumpy(), block(y, parameters, mx.cpu())(mx.nd.array(x)).asnumpy())
assert "cuBLASLt" not in str(block(y, parameters, mx.cpu()).plan(mx.nd.array(x)))
"""
    file = Path(cublaslt["STANDIN_LIBRARY_CALLS"]).with_name("notes")
    check(cublaslt, f"FILE = {str(file)!r}\n" + code)
    for after in ("0+", "1"):
        faults = {"STANDIN_LIBRARY_FAULTS": f"cublasLtMatmulAlgoGetHeuristic:{after}:15"}
        check({**cublaslt, **faults}, f"FILE = {str(file)!r}\n" + code)
    own = "gpu(0): mxrt's kernels, in place of cuBLASLt, compute"
    both = f"gpu(0): cuBLASLt computes plain; {own} leaky"
    assert file.read_text().splitlines() == [both, f"{own} plain, leaky", both]


def test_the_plan_of_a_graph_in_parts_names_the_layers_of_the_library(cublaslt) -> None:
    code = """
class Twice(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

@mx.operator.register("twice")
class TwiceProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Twice()

y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=24, name="before")
y = mx.sym.FullyConnected(mx.sym.Custom(y, op_type="twice"), num_hidden=8, name="after")
parameters = {"before_weight": values(24, 24), "before_bias": values(24)}
parameters |= {"after_weight": values(8, 24), "after_bias": values(8)}
x = values(6, 24)
there, given = block(y, parameters, gpu), mx.nd.array(x, ctx=gpu)
for measure in (True, False):
    notes = [note for note in str(there.plan(given, measure=measure)).splitlines() if "cuBLASLt" in note]
    assert notes == ["gpu(0): cuBLASLt computes before", "gpu(0): cuBLASLt computes after"], notes
assert near(there(given).asnumpy(), block(y, parameters, mx.cpu())(mx.nd.array(x)).asnumpy())
"""
    check(cublaslt, code)


def test_a_call_that_fails_is_an_error_of_that_call(cublaslt) -> None:
    code = """
def said(call):
    try:
        return call().asnumpy()
    except mx.base.MXNetDeviceError as error:
        return str(error)

symbol, parameters = layers()
x = values(6, 24)
here = block(symbol, parameters, mx.cpu())(mx.nd.array(x)).asnumpy()
there, given = block(symbol, parameters, gpu), mx.nd.array(x, ctx=gpu)
found = [said(lambda: there(given)) for _ in range(4)]
errors = [one for one in found if isinstance(one, str)]
assert len(errors) == ERRORS, found
for error in errors:
    assert "cuBLASLt returned 13, CUBLAS_STATUS_EXECUTION_FAILED" in error and "FullyConnected" in error, error
assert all(near(one, here) for one in found if not isinstance(one, str))
assert near(mx.nd.dot(given, given, transpose_b=True).asnumpy(), x @ x.T)
try:
    mx.nd.waitall()
except mx.base.MXNetDeviceError:
    pass
"""
    # In the first call; while the graph is made, which is made later then.
    for after, errors in ((1, 1), (4, 0)):
        faults = {"STANDIN_LIBRARY_FAULTS": f"cublasLtMatmul:{after}:13"}
        check({**cublaslt, **faults}, f"ERRORS = {errors}\n" + code)


def test_a_library_that_is_absent_too_old_or_broken_is_an_error_that_says_what_to_do(gpus, tmp_path: Path) -> None:
    said = refused({**gpus, **CUBLASLT})
    for words in (
        "MXRT_GPU_LIBRARIES names cublaslt, and cuBLASLt cannot be used",
        "libcublasLt.so.13",
        "Expected cuBLASLt 12.0.0 or newer",
        "pip install nvidia-cublas",
        "leave cublaslt out of MXRT_GPU_LIBRARIES",
        "gpu(0)",
    ):
        assert words in said, said
    env = {**with_libraries(gpus, tmp_path / "nvidia", "libcublasLt.so.13"), **CUBLASLT}
    assert "is cuBLASLt 11.11.3, which is too old" in refused({**env, "STANDIN_CUBLASLT": "111103"})
    # CUDA 13's library with a driver of CUDA 12.
    assert "is for CUDA 13, but the driver serves CUDA 12.4" in refused({**env, "STANDIN_VERSION": "12040"})
    faults = {"STANDIN_LIBRARY_FAULTS": "cublasLtCreate:0+:1"}
    assert "no handle: cuBLASLt returned 1, CUBLAS_STATUS_NOT_INITIALIZED" in refused({**env, **faults})
    older = {**with_libraries(gpus, tmp_path / "12", "libcublasLt.so.12"), **CUBLASLT, "STANDIN_CUBLASLT": "120000"}
    check({**older, "STANDIN_VERSION": "12040"}, PLAN)
    assert "multiply" in calls(older)


def test_the_setting_and_what_commands_say_of_it(cublaslt) -> None:
    wrong = run_python("import mxrt as mx; mx.nd.ones((2,))", env={"MXRT_GPU_LIBRARIES": "cublas"})
    assert "MXRT_GPU_LIBRARIES is 'cublas'; expected a list of cublaslt, cudnn" in wrong.stderr
    without = {**cublaslt, "MXRT_GPU_LIBRARIES": ""}
    for command in (("doctor", "--gpu"), ("info",)):
        for env, words in ((cublaslt, ", used (MXRT_GPU_LIBRARIES)"), (without, ", not used")):
            lines = mxrt(*command, env=env).stdout.splitlines()
            line = next(line for line in lines if line.startswith("cuBLASLt"))
            assert "13.1.0, " in line and line.endswith(words), line
