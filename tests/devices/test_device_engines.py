"""Kinds of engine, and processes that fork or end, with devices.

The devices of this process have threads and do their work at once. Children are given other kinds
of engine, devices whose work waits until a thread asks for a result (``MXRT_SIM_MODE=scheduled``),
or whose order a seed decides.
"""

from __future__ import annotations

import pytest

from support import ASYNC, KINDS, last_json, run_python


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_differ_in_what_is_done_when_a_call_returns(kind: str) -> None:
    """The devices do nothing before a thread waits: the engine, or with ``Async`` only the
    program.
    """
    done = run_python(
        """
        import json, sys, time, mxrt as mx
        mx.engine.set_type(sys.argv[1])
        a, b = mx.nd.ones((4,), ctx=mx.sim(0)), mx.nd.ones((4,), ctx=mx.sim(1))
        a.wait_to_read(), b.wait_to_read()
        x, y = a + 1, b + 1
        at_once = x.is_ready()
        if not sys.argv[1].endswith("Async"):
            while not (x.is_ready() and y.is_ready()):
                time.sleep(0.001)
        else:
            time.sleep(0.05)
        ready = [x.is_ready(), y.is_ready()]
        pending = mx.testing.pending(mx.sim(0)) > 0
        try:
            mx.nd.take(a, mx.nd.array([9], ctx=mx.sim(0)), mode="raise")
            at_call = False
        except IndexError:
            at_call = True
        values = [x.asnumpy().tolist(), y.as_in_context(mx.sim(0)).asnumpy().tolist()]
        print(json.dumps([mx.runtime.info()["engine"], at_once, ready, pending, at_call, values]))
        """,
        kind,
        env={"MXRT_SIM_MODE": "scheduled"},
    )
    name, at_once, ready, pending, at_call, values = last_json(done)
    asynchronous = kind.endswith("Async")
    assert at_once or kind != "NaiveEngine"
    assert name == kind and at_call == (kind == "NaiveEngine")
    assert ready == [not asynchronous] * 2 and pending == asynchronous
    assert values == [[2] * 4] * 2


def test_a_device_waits_for_another_without_the_host(mx) -> None:
    """A chain over two devices and back is pushed before anything has run."""
    done = run_python(
        """
        import mxrt as mx
        x = mx.nd.ones((8,), ctx=mx.sim(0))
        for n in range(20):
            x = (x + 1).as_in_context(mx.sim(n % 2))
        y = x.as_in_context(mx.cpu()) * 2  # on the host, parked until the devices are done
        assert not x.is_ready() and not y.is_ready() and mx.testing.pending(mx.sim(0)) > 40
        print(int(y.sum().asscalar()), mx.testing.check(mx.sim(0))[0])
        """,
        env={"MXNET_ENGINE_TYPE": ASYNC[1], "MXRT_SIM_MODE": "scheduled", "MXRT_SIM_CHECK": "1"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == (f"{21 * 8 * 2} []", 0, "")


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_a_forked_child_computes_on_the_cpu_only(kind: str) -> None:
    done = run_python(
        """
        import os, sys, mxrt as mx
        x = mx.nd.ones((4,), ctx=mx.sim(0))
        x.wait_to_read()
        y = mx.nd.ones((4,))
        child = os.fork()
        if child == 0:
            good = (y + 1).asnumpy().tolist() == [2] * 4
            texts = []
            for use in (lambda: x + 1, lambda: x.asnumpy(), lambda: mx.nd.ones((2,), ctx=mx.sim(0)).asnumpy()):
                try:
                    use().wait_to_read()
                except mx.base.MXNetDeviceError as error:
                    texts.append("forked" in str(error) and "sim(0)" in str(error))
            sys.stdout.flush()
            os._exit(0 if good and texts == [True] * 3 else 3)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), (x + 1).asnumpy().tolist())
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0 [2.0, 2.0, 2.0, 2.0]", 0, "")


@pytest.mark.parametrize("mode", ["threaded", "pumped", "scheduled"])
@pytest.mark.parametrize("kind", ASYNC)
def test_the_process_ends_while_devices_work(kind: str, mode: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        x = mx.nd.ones((64, 64), ctx=mx.sim(0))
        for n in range(200):
            x = mx.nd.dot(x, x) / 64
            y = x.as_in_context(mx.sim(1))
        z = y.as_in_context(mx.cpu()) + 1
        bad = mx.nd.take(x, mx.nd.array([99], ctx=mx.sim(0)), mode="raise")
        capsule = x.__dlpack__()
        """,
        env={"MXNET_ENGINE_TYPE": kind, "MXRT_SIM_MODE": mode, "MXRT_SIM_DELAY_US": "2000"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
