"""The end of the process and Ctrl-C: nothing crashes, nothing hangs, nothing is printed. More ways
in test_exit_while_busy.py.
"""

from __future__ import annotations

from support import DIGITS, last_json, run_python

LOAD = """
import sys, threading, time
import numpy as np
import mxrt as mx
folder = sys.argv[1]
net = mx.gluon.SymbolBlock.imports(folder + "/digits_cnn-symbol.json", ["data"], folder + "/digits_cnn-0000.params")
with np.load(folder + "/eval.npz") as saved:
    images = saved["in.data"]
"""


def test_unread_results_and_failures_do_not_disturb_the_end() -> None:
    code = (
        LOAD
        + """
for _ in range(200):
    net(mx.nd.array(images[:16]))
mx.nd.random_normal(0, -1, (2, 3))
"""
    )
    result = run_python(code, DIGITS)
    assert (result.returncode, result.stderr) == (0, "")


def test_os_exit_and_sys_exit_keep_their_status_while_work_is_under_way() -> None:
    for leave in ("sys.exit(7)", "import os; os._exit(7)"):
        code = LOAD + "\nfor _ in range(100):\n    net(mx.nd.array(images))\n" + leave
        result = run_python(code, DIGITS)
        assert (result.returncode, result.stderr) == (7, ""), leave


CTRL_C = (
    LOAD
    + """
import json, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs lack it
x = mx.nd.array(images)
right = net(x).asnumpy()

# The last call waits for this, whatever the machine does.
go = threading.Event()

class Gate(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        go.wait()
        self.assign(out_data[0], req[0], in_data[0])

@mx.operator.register("gate_of_exits")
class GateProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Gate()

def press(after):
    time.sleep(after)
    os.kill(os.getpid(), signal.SIGINT)

ended, waits = [], {
    "waitall": lambda ys: mx.nd.waitall(),
    "wait_to_read": lambda ys: ys[-1].wait_to_read(),
    "asnumpy": lambda ys: ys[-1].asnumpy(),
}
for name in ("waitall", "wait_to_read", "asnumpy", "waitall", "wait_to_read"):
    go.clear()
    ys = [net(x) for _ in range(8)] + [net(mx.nd.Custom(x, op_type="gate_of_exits"))]
    thread = threading.Thread(target=press, args=(0.2,))
    try:
        thread.start()
        waits[name](ys)
        raise SystemExit(f"{name} ended before Ctrl-C came")
    except KeyboardInterrupt:
        ended.append(ys[-1].is_ready())
    go.set()
    thread.join()
    mx.nd.waitall()
    assert all(np.array_equal(y.asnumpy(), right) for y in ys), "an answer changed"
assert ((mx.nd.ones((3,)) + 1).asnumpy() == 2).all()
assert np.array_equal(net(x).asnumpy(), right)
print(json.dumps(ended))
"""
)


def test_ctrl_c_during_a_wait_returns_at_once_and_leaves_everything_usable() -> None:
    # A wait to the end would hang.
    assert last_json(run_python(CTRL_C, DIGITS, timeout=120)) == [False] * 5


def test_a_forked_child_answers_like_its_parent(mx) -> None:
    code = (
        LOAD
        + """
import os, json
x = mx.nd.array(images[:4])
right = net(x).asnumpy()
pid = os.fork()
if pid == 0:
    os._exit(0 if np.array_equal(net(x).asnumpy(), right) else 3)
_, status = os.waitpid(pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), bool(np.array_equal(net(x).asnumpy(), right))]))
"""
    )
    assert last_json(run_python(code, DIGITS)) == [0, True]
