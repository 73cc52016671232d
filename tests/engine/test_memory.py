"""Memory stays where it is: over many calls, many shapes, many loads and many failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import DIGITS, last_json, run_python

# Prints the growth of resident memory, in MB, between the first and the last third of the rounds.
GROWTH = """
import json, os, sys
import numpy as np
import mxrt as mx

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

def growth(rounds, body):
    seen = []
    for i in range(rounds):
        body(i)
        seen.append(resident())
    third = rounds // 3
    return max(seen[-third:]) - max(seen[:third])

folder = sys.argv[1]
"""

DIGITS_NET = """
def load():
    return mx.gluon.SymbolBlock.imports(
        folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
net = load()
x = mx.nd.array(np.random.RandomState(0).rand(64, 1, 8, 8))
"""


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("calls", "for _ in range(50): net(x).asnumpy()"),
        ("calls that no thread waits for", "[net(x) for _ in range(50)]; mx.nd.waitall()"),
        ("arrays", "for _ in range(200): (mx.nd.array(np.ones((100, 100))) * 2 + 1).asnumpy()"),
        ("loads", "load()(x).asnumpy()"),
        ("batch sizes", "net(x[: i % 60 + 1]).asnumpy()"),
        ("failures", "fail()"),
    ],
)
def test_memory_does_not_grow_with(what: str, body: str) -> None:
    code = GROWTH + DIGITS_NET + FAIL + f"\ndef body(i):\n    {body}\nprint(json.dumps(growth(90, body)))"
    assert last_json(run_python(code, DIGITS)) < 25, f"MB more after many {what}"


FAIL = """
def fail():
    for _ in range(50):
        try:
            mx.nd.random_normal(0, -1, (64, 64)).wait_to_read()
        except mx.base.MXNetError:
            pass
        try:
            net(mx.nd.zeros((1, 3, 8, 8))).wait_to_read()
        except mx.base.MXNetError:
            pass
"""


def test_a_model_that_is_dropped_gives_its_memory_back(resnet18: Path) -> None:
    code = (
        GROWTH
        + """
x = mx.nd.zeros((1, 3, 224, 224))
def body(i):
    net = mx.gluon.SymbolBlock.imports(
        folder + "/resnet18_v1-symbol.json", ["data"], folder + "/resnet18_v1-0000.params")
    net(x).wait_to_read()
print(json.dumps(growth(12, body)))
"""
    )
    # Models that are kept would show eight times, at 45 MB or more. Two may be there at the same
    # moment: the next one is read while the last work of the one before ends.
    assert last_json(run_python(code, resnet18, timeout=120)) < 200


LIMIT = """
import json, sys, threading
import numpy as np
import mxrt as mx

net = mx.gluon.SymbolBlock.imports(
    sys.argv[1] + "/digits_cnn-symbol.json", ["data"], sys.argv[1] + "/digits_cnn-0000.params")
image = np.random.RandomState(0).rand(1, 1, 8, 8).astype("float32")
small, large = mx.nd.array(image), mx.nd.array(np.repeat(image, 20000, 0))
expected = net(small).asnumpy()
mx.set_memory_limit(mx.runtime.info()["memory_in_use"] + (4 << 20))
wrong, right = [], 0
stop = threading.Event()

def others():
    while not stop.is_set():
        try:
            if not np.array_equal(net(small).asnumpy(), expected):
                wrong.append("another answer")
        except Exception as error:
            wrong.append(repr(error))

threads = [threading.Thread(target=others) for _ in range(3)]
for thread in threads:
    thread.start()
kinds = set()
for _ in range(20):
    try:
        net(large).asnumpy()
        kinds.add("answered")
    except MemoryError as error:
        kinds.add(type(error).__name__)
        text = str(error)
stop.set()
for thread in threads:
    thread.join()
mx.set_memory_limit(None)
after = net(large).asnumpy()
print(json.dumps([sorted(kinds), wrong[:3], text, bool(np.allclose(after[-1], expected[0], atol=1e-5))]))
"""


@pytest.mark.parametrize("limit", ["1", True, 1.5, -1, 2**70])
def test_a_memory_limit_is_a_number_of_bytes(mx, limit: object) -> None:
    kind = ValueError if type(limit) is int else TypeError
    message = rf"set_memory_limit: limit={limit!r} \({type(limit).__name__}\): expected a whole number of bytes"
    for set_limit in (mx.set_memory_limit, mx.cpu().set_memory_limit, mx.sim(0).set_memory_limit):
        with pytest.raises(kind, match=message):
            set_limit(limit)
    assert mx.runtime.info()["memory_limit"] is None


def test_a_request_beyond_the_memory_limit_fails_alone() -> None:
    kinds, wrong, text, answered = last_json(run_python(LIMIT, DIGITS))
    assert kinds == ["MXNetMemoryError"]
    assert not wrong
    assert "limit" in text
    assert answered, "without the limit it is answered"
