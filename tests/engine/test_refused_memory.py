"""The main flows in processes that get no more memory: an error or an answer, never the end of the
process.
"""

from __future__ import annotations

import re
import sys
import textwrap

import pytest

from support import DIGITS, PEAK_KIB, run_python

#: Why Python 3.10 sees a panic where others see a MemoryError.
OF_RAISED = "Python 3.10 matches exceptions by the class that was raised"

#: Bounds the address space to what is in use and `room` MiB more.
BOUND = """
import resource, sys
import numpy as np
import mxrt as mx

mx.nd.ones((4, 4)).asnumpy()

def bound(mebibytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * resource.getpagesize() + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

def unbound():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

room = int(sys.argv[1])
folder = sys.argv[2]
"""


def results_of(call: str) -> str:
    """A program that calls for results until Python has no memory for one."""
    return f"""
symbol = mx.sym.load(folder + "/digits_cnn-symbol.json")
{call}
bound(room)
results = []
while True:
    results.append({call})
"""


FLOWS = {
    "load and call": """
bound(room)
net = mx.gluon.SymbolBlock.imports(
    folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
for rows in (1, 64, 4096):
    net(mx.nd.ones((rows, 1, 8, 8))).asnumpy()
""",
    "read an array": """
x = mx.nd.ones((8 << 20,))
x.wait_to_read()
bound(room)
x.asnumpy()
""",
    "make an array": """
bound(room)
mx.nd.array([[1.5] * 1000] * 1000).asnumpy()
mx.nd.array(np.ones((4096, 4096), "float64")).asnumpy()
""",
    "many small arrays": """
bound(room)
arrays = []
while True:
    arrays.append(mx.nd.ones((100,)))
""",
    "many small results": """
bound(room)
x, arrays = mx.nd.ones((3,)), []
while True:
    arrays.append(mx.nd.relu(x + 1))
""",
    "operators": """
x = mx.nd.ones((1 << 20,))
x.wait_to_read()
bound(room)
for f in (mx.nd.sort, mx.nd.argsort, mx.nd.softmax, mx.nd.cumsum, mx.nd.exp, mx.nd.norm):
    f(x).asnumpy()
mx.nd.Convolution(
    x.reshape((1, 16, 256, 256)), mx.nd.ones((64, 16, 3, 3)), mx.nd.ones((64,)), kernel=(3, 3), num_filter=64).asnumpy()
mx.nd.concat(*[x] * 20, dim=0).asnumpy()
mx.nd.dot(x.reshape((1024, 1024)), x.reshape((1024, 1024))).asnumpy()
""",
    "operators of numpy": """
x = mx.np.ones((1 << 20,))
m, n = x.reshape((1 << 10, 1 << 10)), x.astype("int32")
mx.waitall()
bound(room)
for f in (
    lambda: mx.np.std(m, axis=0), lambda: mx.np.percentile(x, 50), lambda: mx.np.unique(x),
    lambda: mx.np.argsort(x), lambda: mx.np.insert(x, 3, 1.0), lambda: mx.np.delete(x, 3),
    lambda: mx.np.where(x > 0, 1, 0), lambda: mx.np.random.shuffle(x), lambda: mx.np.average(x, weights=x),
    lambda: mx.np.diff(m, n=2), lambda: mx.np.random.choice(1 << 20, 1 << 19, replace=False),
    lambda: mx.np.mean(n), lambda: mx.np.linalg.norm(m), lambda: mx.np.any(x), lambda: mx.np.pad(m, ((2, 2), (2, 2))),
    lambda: mx.np.einsum("ij,kj->k", m, m), lambda: mx.np.linalg.inv(m), lambda: mx.np.cumsum(n, dtype="float16"),
):
    try:
        f()
        mx.waitall()
    except (MemoryError, mx.base.MXNetError):
        pass
x = m = n = None
""",
    "csv": """
with open(sys.argv[3] + "/a.csv", "w") as file:
    file.write("1,2,3,4\\n" * 100_000)
bound(room)
batches = mx.io.CSVIter(data_csv=sys.argv[3] + "/a.csv", data_shape=(4,), batch_size=20_000)
for batch in batches:
    batch.data[0].asnumpy()
""",
    "save and load": """
x = mx.nd.ones((4 << 20,))
x.wait_to_read()
bound(room)
mx.nd.save(sys.argv[3] + "/x.params", {"x": x})
mx.nd.load(sys.argv[3] + "/x.params")["x"].asnumpy()
""",
    "load a large symbol": """
nodes = [{"op": "null", "name": "x", "inputs": []}]
for i in range(50_000):
    nodes.append({"op": "Activation", "name": f"a{i}", "attrs": {"act_type": "relu"}, "inputs": [[i, 0, 0]]})
import json
text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[50_000, 0, 0]]})
del nodes
bound(room)
symbol = mx.sym.load_json(text)
symbol.infer_shape(x=(2, 2))
symbol.bind(mx.cpu(), {"x": mx.nd.ones((2, 2))}).forward()[0].asnumpy()
""",
    "lists of Python": results_of("symbol.list_arguments()"),
    "texts of Python": results_of("symbol.tojson()"),
    "a long attribute": """
text = "x" * (32 << 20)
bound(room)
mx.nd.reshape(mx.nd.ones((3,)), shape=text)
""",
}

END = """
    print("answered")
except (MemoryError, mx.base.MXNetError, ImportError) as error:
    # Python says with an ImportError that there is no room for a module.
    x = arrays = batches = net = symbol = None
    unbound()
    print("refused", type(error).__name__)
assert float(mx.nd.sum(mx.nd.ones((1000,))).asscalar()) == 1000
print("usable")
"""


@pytest.mark.parametrize("room", [0, 4, 16, 64])
@pytest.mark.parametrize("flow", FLOWS)
def test_without_memory_there_is_an_error_or_an_answer(flow: str, room: int, tmp_path) -> None:
    if sys.version_info < (3, 11) and flow.endswith("of Python"):
        pytest.skip(OF_RAISED)
    body = re.sub(r"(?m)^", "    ", FLOWS[flow])
    result = run_python(BOUND + "try:\n" + body + END, room, DIGITS, tmp_path, timeout=120)
    assert result.returncode == 0, f"{flow} with {room} MiB: {result.returncode}\n{result.stderr[-2000:]}"
    assert result.stdout.split()[-1] == "usable"


NO_OBJECT = """
import sys
import _testcapi
import numpy as np
import mxrt as mx

class Own(mx.nd.NDArray):
    pass

x, y = mx.nd.ones((2,)), mx.np.ones((2,))
csr = mx.nd.array(np.eye(3)).tostype("csr")
with open(sys.argv[1] + "/a.csv", "w") as file:
    file.write("1,2\\n" * 10)
batches = mx.io.CSVIter(data_csv=file.name, data_shape=(2,), batch_size=5)

def batch():
    batches.reset()
    return batches.next().index

symbol = mx.sym.var("x")
for call in (lambda: Own(x), lambda: y + 1, lambda: csr * 2, symbol.get_internals, batch):
    call()
    for number in range(60):
        try:
            _testcapi.set_nomemory(number, number + 1)
            try:
                call()
            finally:
                _testcapi.remove_mem_hooks()
        except BaseException:
            pass
print("usable")
"""


def test_an_object_for_which_python_has_no_memory_ends_no_process(tmp_path) -> None:
    pytest.importorskip("_testcapi")
    result = run_python(NO_OBJECT, tmp_path)
    assert result.returncode == 0, f"{result.returncode}\n{result.stderr[-2000:]}"
    assert result.stdout.split() == ["usable"]


NO_RESULT = """
import _testcapi, sys
import mxrt as mx

symbol = mx.sym.load(sys.argv[1] + "/digits_cnn-symbol.json")
refused = 0
for call in (symbol.list_arguments, symbol.tojson, symbol.attr_dict, mx.runtime.info):
    call()
    for number in range(60):
        try:
            _testcapi.set_nomemory(number, number + 1)
            try:
                call()
            finally:
                _testcapi.remove_mem_hooks()
        except MemoryError:
            refused += 1
assert refused > 60, refused

panic, = [c for c in BaseException.__subclasses__() if c.__name__ == "PanicException"]
assert panic("other words").args == ("other words",) and panic().args == ()
print("usable")
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason=OF_RAISED)
def test_a_result_for_which_python_has_no_memory_is_a_memory_error() -> None:
    pytest.importorskip("_testcapi")
    result = run_python(NO_RESULT, DIGITS)
    assert result.returncode == 0, f"{result.returncode}\n{result.stderr[-2000:]}"
    assert result.stdout.split() == ["usable"]


CALLS = {
    "split": "mx.nd.split(mx.nd.ones((2, 3)), num_outputs=2147483647)",
    "squeezed": "mx.nd.SliceChannel(mx.nd.ones((2, 3)), num_outputs=100000000, squeeze_axis=True)",
    "concat": "mx.nd.Concat(mx.nd.ones((2, 3)), num_args=2147483647)",
    "add_n": "mx.nd.add_n(mx.nd.ones((2, 3)), num_args=2147483647)",
    "zeros": "mx.nd.zeros((2**31, 2**31)).asnumpy()",
    "one_hot": "mx.nd.one_hot(mx.nd.ones((1000,)), depth=2147483647).asnumpy()",
    "tile": "mx.nd.tile(mx.nd.ones((1000,)), reps=(2147483647,)).asnumpy()",
    "batch": "mx.io.CSVIter(data_csv=path, data_shape=(2,), batch_size=2**40).next()",
    "sample": "mx.io.CSVIter(data_csv=path, data_shape=(10**9,), batch_size=1).next()",
    "file": "os.truncate(path, 1 << 30); mx.sym.load(path)",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_number_in_a_call_costs_no_memory_beyond_the_limit(call: str, tmp_path) -> None:
    code = f"""
    import os, sys
    import mxrt as mx

    path = sys.argv[1] + "/a.csv"
    with open(path, "w") as file:
        file.write("1,2\\n" * 10)
    mx.set_memory_limit(100 << 20)
    before = peak_kib()
    try:
        {CALLS[call]}
        print("answered")
    except (MemoryError, mx.base.MXNetError) as error:
        print("refused")
    print(peak_kib() - before)
    """
    result = run_python(PEAK_KIB + textwrap.dedent(code), tmp_path, timeout=60)
    assert result.returncode == 0, result.stderr[-2000:]
    answer, kilobytes = result.stdout.split()
    assert answer == "refused" and int(kilobytes) < 60 << 10, result.stdout


@pytest.mark.parametrize(
    "name", ["unique(x)", "std(x, axis=0)", "percentile(x, 50)", "average(x, weights=x)", "any(x)", "diff(x, n=3)"]
)
def test_scratch_of_operators_counts_against_the_limit(mx, name: str) -> None:
    x = mx.np.ones((1 << 10, 1 << 10))
    x.wait_to_read()
    mx.set_memory_limit(mx.runtime.info()["memory_in_use"] + (1 << 19))
    try:
        with pytest.raises(MemoryError, match=r"allocating \d+ bytes.*: the memory limit is"):
            eval("mx.np." + name, {"mx": mx, "x": x}).asnumpy()
    finally:
        mx.set_memory_limit(None)
        mx.waitall()


def test_few_of_many_places_take_little_memory(mx) -> None:
    places = mx.np.random.choice(10**12, 5, replace=False).asnumpy()
    assert len(set(places)) == 5 and places.min() >= 0 and 10**10 < places.max() < 10**12
    assert mx.np.random.choice(2**41, 3).shape == (3,)
    with pytest.raises(ValueError, match="all 3 probabilities are 0"):
        mx.np.random.choice(3, 2, p=mx.np.array([0.0, 0.0, 0.0])).asnumpy()


def test_a_copy_for_numpy_counts_against_the_limit(mx) -> None:
    array = mx.nd.ones((1 << 20,))
    array.wait_to_read()
    mx.set_memory_limit(mx.runtime.info()["memory_in_use"] + (1 << 20))
    try:
        with pytest.raises(MemoryError, match="allocating 4194304 bytes: the memory limit is"):
            array.asnumpy()
        assert array[:5].asnumpy().tolist() == [1] * 5
    finally:
        mx.set_memory_limit(None)
    in_use = mx.runtime.info()["memory_in_use"]
    assert array.asnumpy().sum() == 1 << 20
    assert mx.runtime.info()["memory_in_use"] == in_use, "a copy belongs to its caller"


def test_the_text_of_a_symbol_counts_against_the_limit_while_it_is_read(mx) -> None:
    text = mx.sym.var("data").tojson() + " " * (1 << 20)
    in_use = mx.runtime.info()["memory_in_use"]
    mx.set_memory_limit(in_use + (16 << 20))
    try:
        with pytest.raises(MemoryError, match="the memory limit is"):
            mx.sym.load_json(text)
    finally:
        mx.set_memory_limit(None)
    assert mx.sym.load_json(text).list_arguments() == ["data"]
    assert mx.runtime.info()["memory_in_use"] == in_use
