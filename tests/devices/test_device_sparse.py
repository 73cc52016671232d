"""Sparse arrays on devices, here simulated ones: what a user of a GPU sees.

The values and positions of such an array are in the memory of its device. Operators on them run on
the host, between copies that the device's streams make. A dense operator of the same call or graph
runs on the device.
"""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from support import ASYNC, DEVICE_KIND, RECORDED, in_threads, run_python

MODELS = ["machine", "sagemaker_machine", "learner", "wide_and_deep", "embedding", "layers"]
FOLDER = RECORDED / "sparse"
FEATURES = 1000


@pytest.fixture(autouse=True)
def quiet():
    """Without warnings of dense copies."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\nStorage type fallback")
        yield


def csr(mx, ctx):
    return mx.nd.sparse.csr_matrix(([1, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 4), ctx=ctx)


def rows(mx, ctx):
    return mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 3]), shape=(4, 2), ctx=ctx)


CSR = [[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 0]]
ROWS = [[0, 0], [1, 2], [0, 0], [3, 4]]


def test_sparse_arrays_live_where_they_are_made(mx, sim) -> None:
    made = {
        "csr": (csr(mx, sim), CSR),
        "row_sparse": (rows(mx, sim), ROWS),
        "zeros": (mx.nd.zeros((3, 4), stype="csr", ctx=sim), np.zeros((3, 4))),
        "empty": (mx.nd.sparse.empty("row_sparse", (4, 2), ctx=sim), np.zeros((4, 2))),
        "of dense": (mx.nd.sparse.csr_matrix(np.array(CSR), ctx=sim), CSR),
        "tostype": (mx.nd.array(CSR, ctx=sim).tostype("csr"), CSR),
        "array": (mx.nd.sparse.array(csr(mx, mx.cpu()), ctx=sim), CSR),
        "astype": (csr(mx, sim).astype("float64"), CSR),
        "copy": (rows(mx, sim).copy(), ROWS),
    }
    for name, (array, wanted) in made.items():
        assert array.context == sim and array.stype != "default", name
        assert array.data.context == array.indices.context == sim, name
        assert array.asnumpy().tolist() == np.array(wanted).tolist(), name
    assert f"@{DEVICE_KIND}(0)>" in repr(made["csr"][0])
    one = made["csr"][0]
    assert one.indptr.context == sim and one.indptr.asnumpy().tolist() == [0, 2, 2, 3]
    assert one.indices.asnumpy().tolist() == [0, 2, 1] and one.data.asnumpy().tolist() == [1, 2, 3]
    dense = one.tostype("default")
    assert (dense.stype, dense.context, dense.asnumpy().tolist()) == ("default", sim, CSR)


def test_the_device_holds_what_is_stored_and_no_more(mx, sim) -> None:
    mx.nd.waitall()
    before = sim.memory_info()["in_use"]
    wide = mx.nd.sparse.csr_matrix(([5.0], [1 << 30], [0, 1]), shape=(1, 1 << 33), ctx=sim)
    wide.wait_to_read()
    held = sim.memory_info()["in_use"] - before
    assert 0 < held < 1 << 16, held
    assert (wide * 2).data.asnumpy().tolist() == [10]
    del wide
    mx.nd.waitall()
    assert sim.memory_info()["in_use"] <= before


def test_copies_between_all_memories_keep_the_storage(mx, sim) -> None:
    contexts = [mx.cpu(), mx.cpu(1), sim, mx.sim(1)]
    for make, wanted in ((csr, CSR), (rows, ROWS)):
        for one in contexts:
            x = make(mx, one)
            for other in contexts:
                y = x.as_in_context(other)
                assert (y is x) == (one == other) and (y.context, y.stype) == (other, x.stype)
                same, dense = mx.nd.zeros(x.shape, stype=x.stype, ctx=other), mx.nd.ones(x.shape, ctx=other)
                x.copyto(same)
                x.copyto(dense)
                found = [array.asnumpy().tolist() for array in (y, same, dense, x.copyto(other))]
                assert found == [wanted] * 4, (one, other)
                again = mx.nd.zeros(x.shape, stype=x.stype, ctx=other)
                again[:] = x
                assert again.asnumpy().tolist() == wanted
                again[:] = mx.nd.zeros(x.shape, ctx=one)
                assert again.asnumpy().max() == 0 == again.data.size


def test_a_copy_takes_the_value_of_its_time(mx, sim) -> None:
    x = mx.nd.sparse.zeros("row_sparse", (4, 2))
    copies = []
    for i in range(20):
        x[:] = rows(mx, mx.cpu()) * i
        there = x.as_in_context(sim)
        copies.append(there.as_in_context(mx.sim(1)).as_in_context(mx.cpu()))
        there[:] = mx.nd.sparse.zeros("row_sparse", (4, 2))
        assert there.indices.asnumpy().tolist() == []
    for i, copy in enumerate(copies):
        assert copy.asnumpy().tolist() == (np.array(ROWS) * i).tolist()


OPERATORS = {
    "dot": lambda nd, a, b, d: nd.dot(a, d),
    "transposed dot": lambda nd, a, b, d: nd.dot(a, nd.ones_like(d)[:3], transpose_a=True),
    "dot of rows": lambda nd, a, b, d: nd.sparse.dot(a, b),
    "numbers": lambda nd, a, b, d: a * 3,
    "functions": lambda nd, a, b, d: nd.sparse.sqrt(a),
    "sum of two": lambda nd, a, b, d: nd.sparse.add(a, a),
    "product": lambda nd, a, b, d: b * d,
    "sum": lambda nd, a, b, d: nd.sum(a, axis=1),
    "norm": lambda nd, a, b, d: nd.norm(a),
    "slice": lambda nd, a, b, d: a[1:3],
    "retain": lambda nd, a, b, d: b.retain(nd.array([3], ctx=b.context)),
    "squares": lambda nd, a, b, d: nd._internal._square_sum(b, axis=1, keepdims=True),
    "cast": lambda nd, a, b, d: nd.cast_storage(d, stype="row_sparse"),
    "concat": lambda nd, a, b, d: nd.concat(a, a, dim=0),
    "no kernel": lambda nd, a, b, d: nd.softmax(a),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_the_hosts_bits_and_storage_on_the_device(mx, sim, name) -> None:
    found = []
    for ctx in (mx.cpu(), sim):
        dense = mx.nd.array(np.random.default_rng(1).standard_normal((4, 2)), ctx=ctx)
        result = OPERATORS[name](mx.nd, csr(mx, ctx), rows(mx, ctx), dense)
        assert result.context == ctx
        found.append((result.stype, result.shape, result.asnumpy().tobytes()))
    assert found[0] == found[1]


def test_out_is_written_in_its_storage_and_place(mx, sim) -> None:
    a, out = csr(mx, sim), mx.nd.zeros((3, 4), stype="csr", ctx=sim)
    mx.nd.sparse.square(a, out=out)
    assert out.asnumpy().tolist() == (np.array(CSR) ** 2).tolist()
    mx.nd.sparse.square(out, out=out)
    assert out.asnumpy().tolist() == (np.array(CSR) ** 4).tolist()
    dense = mx.nd.ones((3, 4), ctx=sim)
    mx.nd.sparse.square(a, out=dense)
    assert (dense.stype, dense.asnumpy().tolist()) == ("default", (np.array(CSR) ** 2).tolist())


def test_arrays_on_different_devices_do_not_mix(mx, sim) -> None:
    here, there = csr(mx, mx.cpu()), csr(mx, sim)
    dense = mx.nd.ones((4, 2))
    for call in (
        lambda: mx.nd.dot(there, dense),
        lambda: mx.nd.dot(here, dense.as_in_context(sim)),
        lambda: there + here,
        lambda: mx.nd.sparse.square(here, out=there),
        lambda: mx.nd.sparse.square(there, out=here),
    ):
        with pytest.raises(mx.base.MXNetDeviceError) as raised:
            call()
        assert "cpu(0)" in str(raised.value) and f"{DEVICE_KIND}(0)" in str(raised.value)


def test_damaged_positions_are_a_failure_until_the_array_is_overwritten(mx, sim) -> None:
    bad = mx.nd.sparse.csr_matrix(([1.0], [9], [0, 1, 1, 1]), shape=(3, 4), ctx=sim)
    after, beside = mx.nd.dot(bad, mx.nd.ones((4, 2), ctx=sim)) + 1, csr(mx, sim) * 2
    for array in (bad, after, bad.as_in_context(mx.cpu())):
        with pytest.raises(mx.base.MXNetError, match="column 9 at position 0 is outside"):
            array.asnumpy()
    assert beside.asnumpy().tolist() == (np.array(CSR) * 2).tolist()
    bad[:] = csr(mx, mx.cpu())
    assert bad.asnumpy().tolist() == CSR
    mx.nd.waitall()


def test_memory_of_other_libraries_takes_no_sparse_array(mx, sim) -> None:
    for share in (mx.nd.to_dlpack_for_read, mx.nd.to_dlpack_for_write):
        with pytest.raises(mx.base.MXNetError, match=r"stored as csr cannot be shared.*tostype\('default'\)"):
            share(csr(mx, sim))


def test_files_and_pickles(mx, sim, tmp_path: Path) -> None:
    mx.nd.save(str(tmp_path / "host"), {"a": csr(mx, mx.cpu()), "b": rows(mx, mx.cpu())})
    mx.nd.save(str(tmp_path / "device"), {"a": csr(mx, sim), "b": rows(mx, sim)})
    if DEVICE_KIND == "sim":
        assert (tmp_path / "host").read_bytes() == (tmp_path / "device").read_bytes()
    assert mx.nd.load(str(tmp_path / "device"))["a"].asnumpy().tolist() == CSR
    again = pickle.loads(pickle.dumps(rows(mx, sim)))
    assert (again.context, again.stype, again.asnumpy().tolist()) == (sim, "row_sparse", ROWS)


def opened(mx, name: str, ctx):
    """A recorded model with its arrays on a device, and what MXNet computed."""
    kept = np.load(FOLDER / f"{name}.npz")
    symbol, arguments, _ = mx.model.load_checkpoint(str(FOLDER / name), 0)
    parts = tuple(kept[f"csr_{part}"] for part in ("values", "columns", "pointers"))
    given = {
        one: mx.nd.array(kept[one], ctx=ctx)
        if one in kept
        else mx.nd.sparse.csr_matrix(parts, shape=(len(parts[2]) - 1, FEATURES), ctx=ctx)
        for one in kept["names"].tolist()
    }
    given.update({one: array.as_in_context(ctx) for one, array in arguments.items()})
    shapes = symbol.infer_shape(**{one: array.shape for one, array in given.items()})[0]
    zeros = {one: mx.nd.zeros(n, ctx=ctx) for one, n in zip(symbol.list_arguments(), shapes, strict=True)}
    return symbol, {**zeros, **given}, kept


def check(outputs, kept, ctx) -> None:
    for i, output in enumerate(outputs):
        assert (output.stype, output.context) == (str(kept[f"stype{i}"]), ctx)
        np.testing.assert_allclose(output.asnumpy(), kept[f"output{i}"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_models_compute_what_mxnet_did(mx, sim, name) -> None:
    symbol, given, kept = opened(mx, name, sim)
    check(symbol.bind(sim, given).forward(), kept, sim)
    names = kept["names"].tolist()
    labels = [one for one in given if one.endswith("label")]
    module = mx.mod.Module(symbol, data_names=names, label_names=labels or None, context=sim)
    module.bind([(one, given[one].shape) for one in names], None, for_training=False)
    module.set_params({one: array for one, array in given.items() if one not in (*names, *labels)}, {})
    # As iterators give them: on the host.
    module.forward(mx.io.DataBatch([given[one].as_in_context(mx.cpu()) for one in names]), is_train=False)
    check(module.get_outputs(), kept, sim)
    called = mx.nd.CachedOp(symbol)(*[given[one] for one in symbol.list_arguments()])
    check(called if isinstance(called, list) else [called], kept, sim)


def test_threads_share_a_model_on_the_device_while_its_weights_change(mx, sim) -> None:
    symbol, given, kept = opened(mx, "machine", sim)

    def call(number: int) -> None:
        executor = symbol.bind(sim, given)
        for _ in range(5):
            if number == 0:
                given["v"][:] = given["v"].copy()
            check(executor.forward(), kept, sim)

    in_threads(16, call)


@pytest.mark.parametrize("kind", ["NaiveEngine", "ThreadedEngine", *ASYNC])
@pytest.mark.parametrize("mode", ["threaded", "scheduled", "pumped"])
def test_every_engine_orders_the_copies_of_sparse_arrays(kind: str, mode: str) -> None:
    done = run_python(
        """
        import numpy as np
        import mxrt as mx
        sim = mx.sim(0)
        x = mx.nd.sparse.csr_matrix(([1.0, 2.0], [0, 2], [0, 1, 2]), shape=(2, 3), ctx=sim)
        y = mx.nd.ones((3, 4), ctx=sim)
        wrong = 0
        for i in range(30):
            product = mx.nd.dot(x, y)
            back = x.as_in_context(mx.cpu())
            y += 1
            x[:] = x * 2 if i % 5 else mx.nd.sparse.csr_matrix(([1.0, 2.0], [0, 2], [0, 1, 2]), shape=(2, 3), ctx=sim)
            scale = back.data.asnumpy()[0]
            wrong += product.asnumpy().tolist() != [[scale * (i + 1)] * 4, [2 * scale * (i + 1)] * 4]
        mx.nd.waitall()
        print(wrong)
        """,
        env={"MXNET_ENGINE_TYPE": kind, "MXRT_SIM_MODE": mode, "MXRT_SIM_CHECK": "1"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0", 0, "")


@pytest.mark.skipif(DEVICE_KIND != "sim", reason="faults of a simulated device")
def test_a_copy_that_fails_takes_its_array_and_nothing_else() -> None:
    done = run_python(
        """
        import mxrt as mx
        sim = mx.sim(0)
        good = mx.nd.sparse.csr_matrix(([1.0], [0], [0, 1]), shape=(1, 2), ctx=sim)
        good.wait_to_read()
        here = mx.nd.sparse.csr_matrix(([1.0], [0], [0, 1]), shape=(1, 2))
        here.wait_to_read()
        mx.testing.fail(sim, "copy", after=0)
        bad = here.as_in_context(sim)
        after = bad * 2
        for array in (bad, after):
            try:
                array.asnumpy()
                print("not raised")
            except mx.base.MXNetDeviceError as error:
                assert "sim(0)" in str(error), error
        assert (good * 2).asnumpy().tolist() == [[2, 0]] and here.asnumpy().tolist() == [[1, 0]]
        bad[:] = here
        print(bad.asnumpy().tolist())
        try:
            mx.nd.waitall()
        except mx.base.MXNetDeviceError:
            pass
        """
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[[1.0, 0.0]]", 0, "")


def test_a_gpu_holds_sparse_arrays_too(gpus) -> None:
    done = run_python(
        """
        import mxrt as mx
        gpu = mx.gpu(0)
        x = mx.nd.sparse.csr_matrix(([1.0, 2.0], [0, 2], [0, 1, 2]), shape=(2, 3), ctx=gpu)
        y = mx.nd.dot(x, mx.nd.ones((3, 2), ctx=gpu)) + 1
        print(x.context, y.context, y.asnumpy().tolist(), (x * 2).stype, x.as_in_context(mx.gpu(1)).data.context)
        """,
        env=gpus,
    )
    assert done.stdout.strip() == "gpu(0) gpu(0) [[2.0, 2.0], [3.0, 3.0]] csr gpu(1)", done.stderr
