"""Refusals of GPUs: values that an operator cannot use, and operators without a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import ASYNC, run_python


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
        nan = float("nan")
        cases = [[0, 1], [1, -9]], [[7, 1], [0, 0]], [[2e9, 1], [0, 0]], [[0, 8, 7], [5, 0, 9]], [[0, 1], [nan, 9]]
        for places in cases:
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
        "index 8 is out of range for axis 0 with size 3: expected -3 <= index < 3",
        "index -9223372036854775808 (or NaN) is out of range for axis 1 with size 2: expected -2 <= index < 2",
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


def test_labels_and_probabilities_that_are_none_fail_as_on_the_cpu(gpus) -> None:
    """The first of several is named."""
    done = run_python(
        """
        import numpy as np, mxrt as mx
        internal = mx.nd._internal
        data = np.zeros((4, 3, 3), "float32")
        right, lengths = [[1, 2], [1, 0], [2, 1]], {"use_data_lengths": True, "use_label_lengths": True}
        losses = [
            ([[1, 2], [7, -3], [9, 9]], {}), ([[1, 2], [np.nan, 0], [2, -1]], {}), ([[1, -1], [-2, 1], [2, 2]], {}),
            ([[1, 2], [3, 1], [2, 1]], {"blank_label": "last"}),
            (right, [4, 9, -1], {"use_data_lengths": True}), (right, [2, 2, 3], {"use_label_lengths": True}),
            (right, [4, -5, 5], [2, 3, 1], lengths), ([[5, 5]] * 3, [4, 4, 5], [2, 1, -1], lengths),
            (right, [4, 2**36, 4], {"use_data_lengths": True}), (right, [4, -(2**63), 4], {"use_data_lengths": True}),
        ]
        calls = []
        for label, *more, attrs in losses:
            def loss(array, label=label, more=more, attrs=attrs):
                given = [array(numbers, "int64") for numbers in more]
                return mx.nd.CTCLoss(array(data), array(label), *given, **attrs)
            calls.append(loss)
        for weights in ([1, -2.5, np.nan], [0, 0], [1, np.inf], [np.nan, 1], [1, 2]):
            for replace in (True, False):
                def choice(array, weights=weights, replace=replace):
                    n = len(weights)
                    return internal._npi_choice(array(weights), a=n, size=(2,), replace=replace, weighted=True)
                calls.append(choice)
        for chances in ([0.5, 0.6], [-0.1, 0.5], [np.nan, 0.1], [1, 2e-5]):
            calls.append(lambda array, p=chances: internal._npi_multinomial(array(p), n=3, pvals=None, size=(4,)))
            calls.append(lambda array, p=chances: internal._npi_multinomial(n=3, pvals=tuple(p), size=(4,)))
        calls.append(lambda array: mx.np.random.choice(3, 5, replace=False))
        calls.append(lambda array: internal._npi_multinomial(n=2**40, pvals=(0.5, 0.5)))
        for i, call in enumerate(calls):
            said = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                with ctx:
                    array = lambda numbers, dtype="float32": mx.nd.array(np.array(numbers, dtype), dtype=dtype)
                    try:
                        call(array).asnumpy()
                        said.append(None)
                    except mx.base.MXNetError as error:
                        said.append((type(error), error.message.split("\\n")[0]))
            assert len(said) == 2 and said[0] == said[1], (i, said)
            print(said[0] and said[0][1].split(": ", 1)[-1])
        """,
        env=gpus,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "a label of sequence 1 is 7; expected 0 to 2"
    assert lines[5] == "the label length of sequence 2 is 3; expected 0 to 2"
    assert lines[10:12] == ["-2.5 is not a probability"] * 2
    assert lines[12:14] == ["all 2 probabilities are 0: at least one must be positive"] * 2
    assert lines.count("None") == 2 and lines[18:20] == ["None"] * 2


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
