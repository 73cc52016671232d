"""Kernels of GPUs: their text is compiled for the host, and runs there as kernels of the stand-in
for the CUDA driver.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from conformance_gpu import FAMILIES, command, environment, judged, missing
from support import ASYNC, HOST, KERNELS, ROOT, compiler, host_kernels, last_json, run, run_python


def kernels(env: dict[str, str], *arguments: str, timeout: float = 200):
    return run([sys.executable, str(ROOT / "tests" / "cuda_kernels.py"), *arguments], timeout, env)


def judgement(done) -> dict:
    """The JSON of cuda_kernels.py about its calls, with which its exit code must agree."""
    assert done.stdout.strip(), f"exit code {done.returncode}\n{done.stderr[-4000:]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert done.returncode == (1 if found["wrong"] else 0), done.stderr[-4000:]
    return found


@pytest.mark.timeout(620)
@pytest.mark.parametrize("orders", ["1-2", pytest.param("0-5", marks=pytest.mark.slow)])
def test_every_kernel_gives_what_the_cpu_gives(orders: str, gpus, tmp_path: Path) -> None:
    """The threads of a block run in several orders, if it has barriers: warps take turns or run
    ahead, copies come early or late.
    """
    names = tmp_path / "launched"
    env = {**gpus, "STANDIN_LAUNCHED": str(names), "STANDIN_DELAY_US": "0"}
    found = judgement(kernels(env, "--orders", orders, timeout=600))
    assert found["wrong"] == []
    assert found["calls"] > 1000
    # GPUs without warpgroup instructions have other kernels for large products.
    older = judgement(kernels({**env, "STANDIN_CAPABILITY": "80"}, "--orders", "1-1", "tiles"))
    assert older["wrong"] == []
    assert older["calls"] > 30
    text = "".join(path.read_text() for path in KERNELS.glob("*.h"))
    entries = set(re.findall(r"^ENTRY(?:_WITH_BARRIERS)?\((\w+)\)$", text, re.MULTILINE))
    left_out = {"fold_batch_norm"}  # models run it
    assert len(entries) > 25 and entries - left_out == set(names.read_text().split()) - left_out


# What orders the threads of a block, and their copies.
ORDERS = re.compile(
    r"__sync(?:threads|warp)\(\);|copy_wait<[^>]*>\(\);|barrier_wait\([^;]*\);|show_products\(\);|warpgroup_wait\(\);"
)


# Barriers whose lack is looked for every day: of a search, of products, and a wait for copies. The
# others are long checks.
DAILY = {("nms.h", 0), ("product.h", 1), ("tiles.h", 0)}
# Groups whose kernels with barriers compute the same on any number of blocks, which stride over
# their work.
STRIDING = [
    *("detection", "int8", "linalg", "matching", "multibox_target", "nms", "order", "proposals", "reductions", "rows")
]


@pytest.mark.timeout(620)
def test_blocks_that_have_several_rows_give_what_the_cpu_gives(gpus) -> None:
    """A block that begins its next row changes nothing that its slower threads still read."""
    env = {**gpus, "STANDIN_BLOCKS": "1", "STANDIN_DELAY_US": "0"}
    found = judgement(kernels(env, "--orders", "1-2", *STRIDING, timeout=600))
    assert found["wrong"] == [] and found["calls"] > 1000


def barriers() -> list[tuple[str, int]]:
    """Every barrier of the text, and every wait for copies: file and number within it."""
    texts = {path.name: path.read_text() for path in sorted(KERNELS.glob("*.h"))}
    own = {name: text for name, text in texts.items() if name != "device.h"}
    return [(name, number) for name, text in own.items() for number in range(len(ORDERS.findall(text)))]


@pytest.mark.parametrize(
    ("name", "number"),
    [pytest.param(*one, marks=[] if one in DAILY else [pytest.mark.slow]) for one in barriers()],
    ids=str,
)
def test_a_kernel_that_lacks_a_barrier_is_noticed(name: str, number: int, gpus) -> None:
    def without(text: str) -> str:
        found = list(ORDERS.finditer(text))[number]
        return text[: found.start()] + text[found.end() :]

    # Kernels of several rows use the barriers of reduce.h one after the other.
    groups = {"reduce.h": ["rows", "reductions"], "product.h": ["products"], "tensor_cores.h": ["products"]}
    groups["warpgroup.h"] = ["tiles"]
    group = groups.get(name, [name.removesuffix(".h")])
    env = {**gpus, "STANDIN_KERNELS": str(host_kernels(name, without)), "STANDIN_DELAY_US": "0"}
    # A block goes on to its next row, where a barrier at the end of a row counts.
    env["STANDIN_BLOCKS"] = "1" if set(group) <= set(STRIDING) else "0"
    done = kernels(env, "--first", *group)
    assert "a kernel is wrong" in done.stderr or judgement(done)["wrong"]


def test_the_barriers_are_found() -> None:
    assert len(barriers()) == 44 and set(barriers()) > DAILY


@pytest.mark.parametrize("kind", ["NaiveEngine", "ThreadedEnginePerDevice", *ASYNC])
def test_an_index_out_of_range_fails_its_operator_alone(kind: str, gpus) -> None:
    done = run_python(
        """
        import mxrt as mx
        said = []
        for ctx in (mx.cpu(), mx.gpu(0)):
            x = mx.nd.array([[1, 2], [3, 4]], ctx=ctx)
            bad, good = (mx.nd.array(numbers, ctx=ctx) for numbers in ([0, 7, 1], [1, 0]))
            try:
                wrong = mx.nd.take(x, bad, mode="raise")
                after = wrong + 1
                right = mx.nd.take(x, good, mode="raise")
                assert right.asnumpy().tolist() == [[3, 4], [1, 2]]
                after.asnumpy()
            except mx.base.MXNetError as error:
                said.append((type(error).__name__, "index 7 is out of range for axis 0 with size 2" in str(error)))
            try:
                mx.nd.waitall()
            except mx.base.MXNetError:
                pass
            assert (x + 1).asnumpy().tolist() == [[2, 3], [4, 5]]
        print(said)
        """,
        env={**gpus, "MXNET_ENGINE_TYPE": kind},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == (str([("MXNetIndexError", True)] * 2), 0, "")


def test_what_cannot_be_chosen_fails_as_on_the_cpu(gpus) -> None:
    """Indices at the ends of 64 bits, and the one whose report would be zero; and no elements."""
    done = run_python(
        """
        import numpy as np, mxrt as mx
        at = lambda index: np.array([0, index], "int64")
        calls = [
            lambda ctx, x, n=n: mx.nd.take(x, mx.nd.array(at(n), ctx=ctx, dtype="int64"), mode="raise")
            for n in (-(2**62), -(2**62) + 1, -(2**63), 2**63 - 1, 2**62, -1)
        ]
        with mx.util.np_shape(True):
            for f in ("max", "min"):
                calls.append(lambda ctx, x, f=f: getattr(mx.nd, f)(mx.nd.zeros((0, 3), ctx=ctx), axis=0))
            for call in calls:
                said = []
                for ctx in (mx.cpu(), mx.gpu(0)):
                    try:
                        call(ctx, mx.nd.array([[1, 2], [3, 4]], ctx=ctx)).asnumpy()
                    except mx.base.MXNetError as error:
                        said.append((type(error), error.message.split("\\n")[0]))
                assert len(said) == 2 and said[0] == said[1], said
                print(said[0][1].split(": ", 1)[1])
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout.splitlines()[0]
        == f"index {-(2**62)} is out of range for axis 0 with size 2: expected 0 <= index < 2"
    )
    assert "no elements along the reduced axes" in done.stdout.splitlines()[-1]


def test_several_indices_out_of_range_fail_as_on_the_cpu(gpus) -> None:
    done = run_python(
        """
        import mxrt as mx
        for places in ([[0, 1], [1, -9]], [[7, 1], [0, 0]], [[2e9, 1], [0, 0]]):
            said = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                x = mx.nd.array([[1, 2], [3, 4], [5, 6]], ctx=ctx)
                try:
                    mx.nd.gather_nd(x, mx.nd.array(places, ctx=ctx, dtype="float64")).asnumpy()
                except mx.base.MXNetError as error:
                    said.append((type(error), error.message.split("\\n")[0]))
                assert mx.nd.gather_nd(x, mx.nd.array([[-1], [0]], ctx=ctx)).asscalar() == 5
            assert len(said) == 2 and said[0] == said[1], said
            print(said[0][1].split(": ", 1)[1])
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "index -9 is out of range for axis 1 with size 2: expected -2 <= index < 2",
        "index 7 is out of range for axis 0 with size 3: expected -3 <= index < 3",
        "index 2000000000 is out of range for axis 0 with size 3: expected -3 <= index < 3",
    ]


def test_regions_that_cannot_be_pooled_fail_as_on_the_cpu(gpus) -> None:
    done = run_python(
        """
        import mxrt as mx
        regions = [[9, 0, 0, 3, 3]], [[0, 0, 0, 3, 3], [1, 3, 3, 1, 1]], [[0, 0, 0, 3, 3], [0, 0, 0, 1e6, 3]]
        for rows, aligned in zip(regions, (False, True, False)):
            said = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                x, rois = mx.nd.ones((2, 3, 5, 5), ctx=ctx), mx.nd.array(rows, ctx=ctx)
                try:
                    mx.nd.contrib.ROIAlign(x, rois, (2, 2), 1, aligned=aligned).asnumpy()
                except mx.base.MXNetError as error:
                    said.append((type(error), error.message.split("\\n")[0]))
            assert len(said) == 2 and said[0] == said[1], said
            print(said[0][1])
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(": ", 1)[1] for line in done.stdout.splitlines()] == [
        "index 9 is out of range for axis 0 with size 2: expected 0 <= index < 2",
        "region 1 cannot be pooled: its sides must be positive with aligned=True",
        "region 1 cannot be pooled: its bins must be at most 4096 pixels long",
    ]


def test_matrices_that_cannot_be_factorised_fail_as_on_the_cpu(gpus) -> None:
    """The first one of a batch is named, whichever block reports first."""
    done = run_python(
        """
        import mxrt as mx
        good, bad = [[4, 2], [2, 5]], [[1, 2], [2, 1]]
        zero = [[0, 0], [1, 1]]
        calls = [("potrf", [good, bad, bad]), ("potri", [good, good, zero]), ("inverse", [zero, good, zero])]
        for name, matrices in calls:
            said = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                a = mx.nd.array(matrices, ctx=ctx)
                try:
                    getattr(mx.nd.linalg, name)(a).asnumpy()
                except mx.base.MXNetError as error:
                    said.append((type(error), error.message.split("\\n")[0]))
                assert getattr(mx.nd.linalg, name)(mx.nd.array(good, ctx=ctx)).shape == (2, 2)
            assert len(said) == 2 and said[0] == said[1], said
            print(said[0][1].split(": ", 1)[1])
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "matrix 1 is not positive definite",
        "matrix 2 has a zero on its diagonal: it is not a factor that potrf gives",
        "matrix 0 is singular and has no inverse",
    ]


def test_ranges_that_are_none_fail_as_on_the_cpu(gpus) -> None:
    done = run_python(
        """
        import numpy as np, mxrt as mx
        data, sums = np.array([1, np.inf], "float32"), np.array([3, 4], "int32")
        bytes_, one = np.array([3, 4], "int8"), np.array([1], "float32")
        low, high = np.array([-np.inf], "float32"), np.array([-2], "float32")
        calls = [
            ("quantize_v2", [data]), ("quantize", [data, one, high]), ("dequantize", [bytes_, low, one]),
            ("requantize", [sums, one, low]), ("quantized_act", [bytes_, one, high]),
            ("quantized_elemwise_add", [bytes_, bytes_, high, one, one, high]),
        ]
        for name, arrays in calls:
            attrs = {"act_type": "relu"} if name == "quantized_act" else {}
            said = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                given = [mx.nd.array(array, ctx=ctx, dtype=array.dtype) for array in arrays]
                try:
                    made = getattr(mx.nd.contrib, name)(*given, **attrs)
                    (made[0] if isinstance(made, list) else made).asnumpy()
                except mx.base.MXNetError as error:
                    said.append((type(error), error.message.split("\\n")[0]))
            assert len(said) == 2 and said[0] == said[1], (name, said)
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_vision_operators_refuse_fails_as_on_the_cpu(gpus) -> None:
    done = run_python(
        """
        import mxrt as mx
        bins = {"spatial_scale": 1, "output_dim": 3, "group_size": 1, "pooled_size": 2}
        nd, regions = mx.nd.contrib, lambda ctx, *rows: mx.nd.array(rows, ctx=ctx)
        image = lambda ctx, *shape: mx.nd.ones(shape, ctx=ctx)
        calls = [
            lambda at: nd.PSROIPooling(image(at, 2, 3, 5, 5), regions(at, [0, 0, 0, 3, 3], [-2, 0, 0, 3, 3]), **bins),
            lambda at: nd.DeformablePSROIPooling(
                image(at, 2, 3, 5, 5), regions(at, [-1, 0, 0, 3, 3], [2, 0, 0, 3, 3]), no_trans=True, **bins
            ),
            lambda at: nd.RROIAlign(image(at, 2, 3, 5, 5), regions(at, [0, 1, 1, 3, 1e6, 9]), (2, 2), 1),
            lambda at: nd.MultiProposal(
                image(at, 2, 2, 3, 3), image(at, 2, 4, 3, 3), regions(at, [48, 48, 1], [10, 64.5, 1]),
                scales=(1,), ratios=(1,),
            ),
            lambda at: nd.MultiBoxTarget(
                image(at, 1, 2, 4), regions(at, [[-1, 0, 0, 0, 0]]), image(at, 1, 2, 2)
            )[0],
            lambda at: nd.MultiBoxTarget(
                regions(at, [[0, 0, 1, 1], [0, 0, 1, 0.9]]), regions(at, [[1, 0, 0, 1, 1]]), image(at, 1, 2, 2),
                negative_mining_ratio=1, overlap_threshold=0,
            )[0],
        ]
        for call in calls:
            said = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                try:
                    call(ctx).asnumpy()
                except mx.base.MXNetError as error:
                    said.append((type(error), error.message.split("\\n")[0]))
            assert len(said) == 2 and said[0] == said[1], said
            print(said[0][1].split(": ", 1)[1])
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "index -2 is out of range for axis 0 with size 2: expected 0 <= index < 2",
        "index 2 is out of range for axis 0 with size 2: expected 0 <= index < 2",
        "region 0 cannot be pooled: its bins must be at most 4096 pixels long",
        "im_info says 10 x 64.5 pixels, but 3 x 3 pixels of cls_prob with feature_stride=16 cover less",
        "a label of class -1 must have only -1 in its corners",
        "there are fewer background anchors than negative_mining_ratio asks for",
    ]


@pytest.mark.parametrize("kind", ["NaiveEngine", "ThreadedEnginePerDevice", *ASYNC])
def test_an_operator_without_a_kernel_fails_before_anything_runs(kind: str, gpus, tmp_path: Path) -> None:
    names = tmp_path / "launched"
    done = run_python(
        """
        import mxrt as mx
        x = mx.nd.array([[1, 2], [3, 4]], ctx=mx.gpu(1))
        data = mx.sym.var("data")
        net = mx.gluon.SymbolBlock(mx.sym.exp(mx.sym.contrib.fft(mx.sym.relu(data))), data)
        for call, is_graph in ((lambda: mx.nd.contrib.fft(x), False), (lambda: net(x), True)):
            try:
                call()
                print("not raised")
            except mx.base.MXNetNotImplementedError as error:
                text = str(error)
                assert "_contrib_fft has no kernel for gpu(1)" in text and "as_in_context(mx.cpu())" in text, text
                # A graph can move the operator itself.
                assert ("hybridize(fallback=True) or MXRT_GPU_FALLBACK=1" in text) == is_graph, text
        mx.nd.waitall()
        print(mx.nd.contrib.fft(x.as_in_context(mx.cpu())).asnumpy().tolist())
        """,
        env={**gpus, "MXNET_ENGINE_TYPE": kind, "STANDIN_LAUNCHED": str(names)},
    )
    wanted = "[[3.0, 0.0, -1.0, 0.0], [7.0, 0.0, -1.0, 0.0]]"
    assert (done.stdout.strip(), done.returncode, done.stderr) == (wanted, 0, "")
    assert not names.exists()


@pytest.mark.parametrize("asked", ["by a flag", "by a variable"])
def test_a_graph_runs_operators_without_a_kernel_on_the_cpu_where_the_program_asks_for_it(asked: str, gpus) -> None:
    done = run_python(
        """
        import sys, warnings, numpy as np, mxrt as mx
        values = np.random.default_rng(3).normal(size=(4, 3, 3)).astype(np.float32)
        data = mx.sym.var("data")
        grown = mx.sym.broadcast_mul(mx.sym.relu(data) + 1, mx.sym.var("weight"))
        again = mx.sym.contrib.ifft(mx.sym.contrib.fft(data))
        whole = mx.sym.Group([mx.sym.exp(mx.sym.contrib.fft(grown)), grown, again])

        def block(ctx, **flags):
            net = mx.gluon.SymbolBlock(whole, data)
            weight = net.collect_params()["weight"]
            weight.shape = (3,)
            weight.initialize(ctx=ctx)
            weight.set_data(mx.nd.array([0.5, 1, 1.5]))
            net.hybridize(**flags)
            return net

        x = mx.nd.array(values, ctx=mx.gpu(1))
        net = block(mx.gpu(1), **({"fallback": True} if sys.argv[1] == "by a flag" else {}))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = net(x)
            again = net(mx.nd.array(values[:2], ctx=mx.gpu(1)))
        said = [str(one.message) for one in caught]
        assert len(said) == 1 and "gpu(1) has no kernel for _contrib_fft, _contrib_ifft:" in said[0], said
        assert said[0] in net.plan(x) and said[0] in net.plan(x, measure=False)
        assert said[0] not in block(mx.cpu()).plan(mx.nd.array(values))
        assert all(array.context == mx.gpu(1) for array in made)
        expected = block(mx.cpu())(mx.nd.array(values))
        for got, part, want in zip(made, again, expected):
            np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5)
            assert np.array_equal(part.asnumpy(), got.asnumpy()[:2])
        try:
            block(mx.gpu(1), fallback=False)(x)
        except mx.base.MXNetNotImplementedError as error:
            print("refused")
        mx.nd.waitall()
        """,
        asked,
        env={**gpus, **({"MXRT_GPU_FALLBACK": "1"} if asked == "by a variable" else {})},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("refused", 0, "")


def test_a_device_that_runs_the_hosts_kernels_needs_no_fallback(gpus) -> None:
    done = run_python(
        """
        import warnings, mxrt as mx
        warnings.simplefilter("error")
        data = mx.sym.var("data")
        for ctx in (mx.sim(0), mx.cpu()):
            net = mx.gluon.SymbolBlock(mx.sym.exp(mx.sym.contrib.fft(data)), data)
            net.hybridize(fallback=True)
            x = mx.nd.array([[1, 2], [3, 5]], ctx=ctx)
            assert "fallback" not in net.plan(x)
            print(net(x).asnumpy().tolist(), net(x).context == ctx)
        """,
        env=gpus,
    )
    lines = done.stdout.splitlines()
    assert (len(lines), len(set(lines)), done.returncode, done.stderr) == (2, 1, 0, ""), done.stdout


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"STANDIN_CAPABILITY": "50"}, "no kernels for a GPU of compute capability 5.0: it needs 6.0"),
        ({"STANDIN_KERNELS": "/nowhere"}, "CUDA error 209"),
    ],
    ids=["an old GPU", "an image that the driver refuses"],
)
def test_a_gpu_that_no_image_suits_holds_arrays_and_says_so_at_the_call(env: dict[str, str], words: str, gpus) -> None:
    done = run_python(
        """
        import sys, mxrt as mx
        x = mx.nd.array([[1, 2], [3, 4]], ctx=mx.gpu(0))
        net = mx.gluon.SymbolBlock(mx.sym.exp(mx.sym.var("data")), mx.sym.var("data"))
        calls = [lambda: x + 1, lambda: net(x), lambda: x[:, 1:].asnumpy(), lambda: x.__setitem__(0, 1)]
        for call in calls:
            try:
                call()
                print("not raised")
            except mx.base.MXNetError as error:
                assert sys.argv[1] in str(error), error
        mx.nd.waitall()
        print((x.as_in_context(mx.cpu()) + 1).asnumpy().tolist())
        """,
        words,
        env={**gpus, **env},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[[2.0, 3.0], [4.0, 5.0]]", 0, "")


@pytest.mark.timeout(620)
@pytest.mark.parametrize(
    "sampled",
    [True, pytest.param(False, marks=pytest.mark.slow)],
    ids=["numbers with a three", "all"],
)
def test_gpus_give_what_mxnet_gave(sampled: bool, gpus, tmp_path: Path) -> None:
    """Recorded results of the families whose operators have kernels. What has none says so."""
    report = tmp_path / "report.json"
    run(command(report, *(["-k", "3"] if sampled else [])), 600, {**gpus, **environment(), "STANDIN_DELAY_US": "0"})
    passed, wrong = judged(report)
    assert wrong == []
    assert set(passed) == set(FAMILIES)
    if sampled:
        assert passed.total() > 400
    else:
        assert missing(passed) == {}


def test_folded_parameters_go_before_a_call_fails_for_want_of_memory(gpus) -> None:
    """The next call that needs them computes them again."""
    done = run_python(
        """
        import mxrt as mx, numpy as np
        gpu = mx.gpu(0)
        x, names = mx.sym.var("x"), ["gamma", "beta", "mean", "variance"]
        layers = mx.sym.Convolution(x, mx.sym.var("w"), kernel=(3, 3), num_filter=256, no_bias=True)
        layers = mx.sym.BatchNorm(layers, *map(mx.sym.var, names), fix_gamma=False)
        net = mx.gluon.SymbolBlock(layers, x)
        net.collect_params()["w"].shape = (256, 256, 3, 3)
        net.collect_params().initialize(mx.init.Uniform(0.1), ctx=gpu)
        batch = mx.nd.ones((1, 256, 3, 3), ctx=gpu)
        before = net(batch).asnumpy()
        gpu.empty_cache()
        small = gpu.memory_info()["in_use"]
        again = net(batch).asnumpy()
        with_constants = gpu.memory_info()["in_use"]
        # The weights take 2.25 MiB, folded ones as much.
        assert with_constants > small + (2 << 20), (small, with_constants)
        gpu.set_memory_limit(with_constants + (2 << 20))
        other = mx.nd.ones((2 << 18,), ctx=gpu) + 1
        assert other.asnumpy().max() == 2
        del other
        assert before.tobytes() == again.tobytes() == net(batch).asnumpy().tobytes()
        try:
            mx.nd.ones((8 << 18,), ctx=gpu).wait_to_read()
        except mx.base.MXNetMemoryError:
            print("refused")
        """,
        env=gpus,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("refused", 0, "")


def test_batches_of_all_sizes_share_packed_weights_which_no_failed_call_spoils(gpus) -> None:
    done = run_python(
        """
        import mxrt as mx, numpy as np
        x = mx.sym.var("x")
        layers = mx.sym.Convolution(x, mx.sym.var("w"), kernel=(3, 3), num_filter=256, no_bias=True)
        nets = [mx.gluon.SymbolBlock(layers, x) for _ in range(2)]
        weights = mx.nd.array(np.random.default_rng(1).standard_normal((256, 128, 3, 3)).astype("f4"))
        for net, ctx in zip(nets, (mx.gpu(0), mx.cpu()), strict=True):
            net.collect_params()["w"]._load_init(weights, [ctx])
        there, here = nets
        gpu = mx.gpu(0)
        table = mx.nd.array(np.zeros((4, 128, 3, 3)), ctx=gpu)
        bad = mx.nd.take(table, mx.nd.array([9], ctx=gpu), mode="raise")
        outcome = there(bad)
        try:
            outcome.asnumpy()
            print("not raised")
        except mx.base.MXNetError as error:
            assert "index 9" in str(error), error
        del bad, outcome
        used = []
        for batch in (1, 2, 3, 5):
            image = np.full((batch, 128, 3, 3), batch, "f4")
            found = there(mx.nd.array(image, ctx=gpu)).asnumpy()
            assert np.allclose(found, here(mx.nd.array(image)).asnumpy(), 1e-4, 1e-4)
            mx.nd.waitall()
            used.append(gpu.memory_info()["in_use"])
        # Packed weights have 1.1 MiB.
        assert max(used) - used[0] < 1 << 20, used
        print("done")
        """,
        env={**gpus, "MXRT_GPU_RECORDINGS": "0"},
    )
    assert (done.stdout.strip(), done.returncode) == ("done", 0), done.stderr


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "models",
    [
        "digits_cnn half_cnn legacy_mlp lstm_rows module_mlp transformer wide_deep",
        pytest.param("ssd_digits", marks=pytest.mark.slow),
    ],
)
def test_models_give_the_cpus_numbers_from_several_threads(models: str, gpus) -> None:
    """Two GPUs give the same bits from every thread; operator by operator as well."""
    names = models.split()
    command = [sys.executable, str(ROOT / "tests" / "device_models.py"), "--seeds", "1", "--threads", "4", *names]
    found = last_json(run(command, 180, {**gpus, "MXRT_TEST_DEVICES": "gpu", "MXNET_ENGINE_TYPE": ASYNC[0]}))
    assert [model["model"] for model in found["models"] if model.get("calls", 0) >= 4 and model["nodes"] > 0] == names


@pytest.mark.timeout(200)
def test_resnet18_gives_the_cpus_numbers(gpus, resnet18: Path) -> None:
    done = run_python(
        """
        import sys, numpy as np, mxrt as mx
        prefix = sys.argv[1]
        contexts = [mx.cpu(), mx.gpu(0)]
        net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params", ctx=contexts)
        x = np.random.RandomState(3).uniform(-1, 1, (2, 3, 64, 64)).astype("float32")
        wanted, *found = [net(mx.nd.array(x, ctx=ctx)).asnumpy() for ctx in (mx.cpu(), mx.gpu(0), mx.gpu(0))]
        assert found[0].tobytes() == found[1].tobytes()
        worst = float(np.abs(found[0] - wanted).max() / np.abs(wanted).max())
        print("near" if worst <= 1e-5 else worst)
        """,
        resnet18 / "resnet18_v1",
        env=gpus,
        timeout=180,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("near", 0, "")


def test_long_sums_of_single_precision_round_little(gpus) -> None:
    """Sums of two steps are added to those before; one number after the other rounds to 4e-7."""
    done = run_python(
        """
        import numpy as np, mxrt as mx
        random = np.random.RandomState(1)
        a, b = (random.uniform(0, 1, shape).astype("float32") for shape in ((256, 2, 1024), (256, 1024, 4)))
        found = mx.nd.batch_dot(*(mx.nd.array(x, ctx=mx.gpu(0)) for x in (a, b))).asnumpy()
        wanted = a.astype("float64") @ b
        print(np.sqrt(np.mean(((found - wanted) / wanted) ** 2)))
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) < 2e-7


def test_the_images_are_those_of_the_text() -> None:
    """`make cuda-images` makes them, which needs NVRTC; this needs nothing."""
    done = run([sys.executable, str(ROOT / "scripts" / "cuda_images.py"), "--check"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_numbers_of_64_bits_are_divided(tmp_path: Path) -> None:
    """No array of the tests is so large that an index needs them."""
    program = tmp_path / "divide.cpp"
    program.write_text(
        """
        #include "types.h"
        #include "host.cpp"
        #include <random>
        int main() {
            std::mt19937_64 random(1);
            for (int i = 0; i < 200000; i++) {
                i64 a = (i64)(random() >> 1 >> random() % 63), b = (i64)(random() >> 1 >> random() % 63);
                if (b == 0) continue;
                Divisor by{b};
                if (a / by != a / b || a % by != a % b) return printf("%lld %lld", a, b), 1;
            }
        }
        """
    )
    made = tmp_path / "divide"
    command = [compiler(), "-std=c++17", "-O1", f"-I{KERNELS}", f"-I{HOST}", str(program), "-o", str(made)]
    built = run(command)
    assert built.returncode == 0, built.stderr
    done = run([str(made)])
    assert (done.returncode, done.stdout) == (0, "")


def test_operators_of_the_program_and_control_flow_run_on_the_host_and_the_rest_on_the_gpu(gpus) -> None:
    done = run_python(
        """
        import numpy as np, mxrt as mx

        class Op(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                assert in_data[0].context == mx.cpu()
                out_data[0][:] = in_data[0].asnumpy() + aux[0].asnumpy()
                aux[0][:] = aux[0] + 1

        class Prop(mx.operator.CustomOpProp):
            list_auxiliary_states = lambda self: ["count"]
            infer_shape = lambda self, shapes: (shapes, [shapes[0]], [(1,)])
            create_operator = lambda self, ctx, shapes, dtypes: Op()

        mx.operator.register("counts")(Prop)
        data, weight = mx.sym.var("data"), mx.sym.var("weight")
        dense = mx.sym.FullyConnected(data, weight, no_bias=True, num_hidden=3, name="fc")
        rows, last = mx.sym.contrib.foreach(lambda row, s: (row + s, s + 1), dense, mx.sym.var("state"))
        custom = mx.sym.Custom(rows, op_type="counts", name="mine")
        branch = mx.sym.contrib.cond(mx.sym.var("pick"), lambda: custom * 2, lambda: custom - 1)
        net = mx.sym.Group([mx.sym.relu(branch), dense])

        def run(ctx, pick):
            arrays = {
                "data": mx.nd.array(np.arange(8).reshape(2, 4) - 4, ctx=ctx), "weight": mx.nd.ones((3, 4), ctx=ctx),
                "state": mx.nd.zeros(3, ctx=ctx), "pick": mx.nd.array([pick], ctx=ctx),
                "mine_count": mx.nd.array([7], ctx=ctx),
            }
            op = mx.nd.CachedOp(net)
            made = [op(*(arrays[name] for name in net.list_inputs())) for _ in range(3)]
            assert all(array.context == ctx for results in made for array in results)
            values = [[array.asnumpy().tolist() for array in results] for results in made]
            return values, arrays["mine_count"].asscalar()

        for pick in (0, 1):
            want = run(mx.cpu(), pick)
            assert want[1] == 10
            assert run(mx.gpu(0), pick) == want, run(mx.gpu(0), pick)
        bad = mx.nd.CachedOp(mx.sym.Custom(mx.sym.relu(data), op_type="counts", name="mine"))
        spoilt = mx.nd.gather_nd(mx.nd.ones((2, 2), ctx=mx.gpu(0)), mx.nd.array([[99]], ctx=mx.gpu(0)))
        try:
            bad(spoilt, mx.nd.zeros(1, ctx=mx.gpu(0))).asnumpy()
        except mx.MXNetError as error:
            print(error.op)
        """,
        env=gpus,
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("gather_nd", 0, "")
