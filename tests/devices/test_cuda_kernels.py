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
from host_kernels import HOST, KERNELS, compiler, host_kernels
from support import ASYNC, ROOT, last_json, run, run_python


def kernels(env: dict[str, str], *arguments: str, timeout: float = 200):
    return run([sys.executable, str(ROOT / "tests" / "devices" / "cuda_kernels.py"), *arguments], timeout, env)


def judgement(done) -> dict:
    """The JSON of cuda_kernels.py about its calls, with which its exit code must agree."""
    assert done.stdout.strip(), f"exit code {done.returncode}\n{done.stderr[-4000:]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert done.returncode == (1 if found["wrong"] else 0), done.stderr[-4000:]
    return found


@pytest.mark.timeout(620)
@pytest.mark.parametrize(
    "arguments",
    [["--orders", "1-1", "--daily"], pytest.param(["--orders", "0-5"], marks=pytest.mark.slow)],
    ids=["1", "0-5"],
)
def test_every_kernel_gives_what_the_cpu_gives(arguments: list[str], gpus, tmp_path: Path) -> None:
    """The threads of a block run in several orders, if it has barriers: warps take turns or run
    ahead, copies come early or late.
    """
    names = tmp_path / "launched"
    env = {**gpus, "STANDIN_LAUNCHED": str(names), "STANDIN_DELAY_US": "0"}
    found = judgement(kernels(env, *arguments, timeout=600))
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
    *("ctc", "density", "detection", "draws", "int8", "linalg", "matching", "multibox_target", "nms", "order"),
    *("proposals", "reductions", "rows"),
]


@pytest.mark.timeout(620)
def test_blocks_that_have_several_rows_give_what_the_cpu_gives(gpus) -> None:
    """A block that begins its next row changes nothing that its slower threads still read."""
    env = {**gpus, "STANDIN_BLOCKS": "1", "STANDIN_DELAY_US": "0"}
    found = judgement(kernels(env, "--orders", "2-2", *STRIDING, timeout=600))
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
    assert len(barriers()) == 45 and set(barriers()) > DAILY


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
    program = str(ROOT / "tests" / "devices" / "device_models.py")
    command = [sys.executable, program, "--seeds", "1", "--threads", "4", *names]
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
