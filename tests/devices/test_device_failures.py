"""Failures on a device, as a program sees them.

The devices of this process have threads and do their work at once. Children are given other kinds
of engine, devices whose work waits until a thread asks for a result (``MXRT_SIM_MODE=scheduled``),
or whose order a seed decides.
"""

from __future__ import annotations

import pytest

from support import ASYNC, DEVICE_KIND, run_python


def test_a_failure_on_the_device_is_the_hosts_exception(mx, sim) -> None:
    raised = []
    for ctx in (mx.cpu(), sim):
        x = mx.nd.ones((4, 2), ctx=ctx)
        bad = mx.nd.take(x, mx.nd.array([0, 9], ctx=ctx), mode="raise")
        after, beside = bad * 2, x * 2
        assert beside.asnumpy().sum() == 16
        for array in (bad, after, after):
            with pytest.raises(mx.base.MXNetIndexError) as caught:
                array.asnumpy()
            raised.append(caught.value)
        bad[:] = 3
        assert bad.asnumpy().min() == 3, "overwriting heals"
    for error in raised:
        assert (error.op, error.shapes, error.dtypes) == ("take", ((4, 2), (2,)), ("float32", "float32"))
    assert {str(error) for error in raised[:3]} == {str(error) for error in raised[3:]}
    assert [error.device for error in raised] == ["cpu(0)"] * 3 + [f"{DEVICE_KIND}(0)"] * 3
    mx.nd.waitall()


@pytest.mark.parametrize("kind", ASYNC)
def test_a_model_fails_output_by_output_and_request_by_request(kind: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        from concurrent.futures import ThreadPoolExecutor
        data, other = mx.sym.var("data"), mx.sym.var("other")
        rows = mx.sym.take(mx.sym.var("table"), data, mode="raise", name="rows")
        net = mx.gluon.SymbolBlock(mx.sym.Group([rows * 2, other + 1]), [data, other])
        net.collect_params()["table"].shape = (10, 3)
        net.collect_params().initialize(mx.init.One(), ctx=mx.sim(0))

        def ask(n):
            good, fine = net(mx.nd.array([n], ctx=mx.sim(0)), mx.nd.ones((2,), ctx=mx.sim(0)))
            assert fine.asnumpy().tolist() == [2, 2]
            if n < 10:
                return good.asnumpy().tolist() == [[2, 2, 2]]
            try:
                good.asnumpy()
            except mx.base.MXNetIndexError as error:
                return (error.op, error.node, error.device) == ("take", "rows", "sim(0)")

        with ThreadPoolExecutor(8) as pool:
            print(all(pool.map(ask, list(range(12)) * 10)))
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("True", 0, "")


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_a_launch_that_fails_takes_its_results_and_nothing_else(kind: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        sim = mx.sim(0)
        x = mx.nd.ones((4,), ctx=sim)
        x.wait_to_read()
        good = x + 1
        good.wait_to_read()  # streams have no order among themselves
        mx.testing.fail(sim, "launch", after=0)
        bad = x + 2
        after = bad * 3
        try:
            bad.wait_to_read()
            print("not raised")
        except mx.base.MXNetDeviceError:
            beside = x + 4
        assert good.asnumpy().tolist() == [2] * 4 and beside.asnumpy().tolist() == [5] * 4
        for array in (bad, after, bad):
            try:
                array.asnumpy()
                print("not raised")
            except mx.base.MXNetDeviceError as error:
                assert (error.op, error.device) == ("_plus_scalar", "sim(0)"), error
                assert "launching" in str(error) and "device error 1" in str(error), error
        assert (x * 2).asnumpy().tolist() == [2] * 4
        mx.nd.waitall()
        print("done")
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", *ASYNC])
def test_a_lost_device_takes_what_is_on_it_and_nothing_else(kind: str) -> None:
    done = run_python(
        """
        import mxrt as mx
        sim = mx.sim(0)
        x = mx.nd.ones((4,), ctx=sim)
        x.wait_to_read()
        mx.testing.fail(sim, "execute", code=700)
        raised = 0
        for _ in range(5):
            try:
                (x + 1).asnumpy()
            except mx.base.MXNetDeviceError as error:
                raised += 1
                assert "sim(0) is lost" in str(error) and "700" in str(error), error
        assert raised == 5
        other = mx.nd.ones((4,), ctx=mx.sim(1)) + mx.nd.ones((4,), ctx=mx.sim(1))
        assert other.asnumpy().tolist() == [2] * 4 and (mx.nd.ones((4,)) * 3).asnumpy().tolist() == [3] * 4
        try:
            mx.nd.waitall()
        except mx.base.MXNetError as error:
            assert "lost" in str(error)
        print("done")
        """,
        env={"MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("done", 0, "")
