"""`mxrt serve`: requests that wait while a model computes are joined into one call."""

from __future__ import annotations

import contextlib
import json
import time

import numpy as np
import pytest

from serving import answer, asked, called, connect, exchange, files, gauge, golden, meta, request, same
from support import MODELS, in_threads, last_json, run_python

LABELS = 'model="{}",version="1"'


def served(mx, name: str, batch: str | int):
    described = meta(name)["inputs"]
    shapes = {tensor["name"]: [-1, *tensor["shape"][1:]] for tensor in described}
    return mx.serve.Model(MODELS / name, shapes=shapes, batch=batch)


def said(server, name: str) -> str:
    found = next(model for model in server.models if model["name"] == name)
    return found["parameters"]["batch"]


def test_members_of_a_batch_get_their_own_rows(mx) -> None:
    wanted = {batch: called(mx, "module_mlp", batch) for batch in (1, 3)}
    with mx.serve.Server({"module_mlp": served(mx, "module_mlp", 8)}, port=0) as server:
        assert said(server, "module_mlp").startswith("at most 8 rows")
        for batch in wanted:
            assert same(asked(server, "module_mlp", golden("module_mlp", batch)), wanted[batch]), "alone: exact"

        def ask(number: int) -> None:
            names = [tensor["name"] for tensor in meta("module_mlp")["inputs"]]
            with contextlib.closing(connect(server)) as connection:
                for turn in range(60):
                    batch = (1, 3)[(number + turn) % 2]
                    arrays = golden("module_mlp", batch)
                    body, headers = request(names, arrays, parameters={"binary_data_output": True}, id=str(turn))
                    path = "/v2/models/module_mlp/infer"
                    head, found = answer(*exchange(connection, path, body, headers))
                    assert head["id"] == str(turn)
                    for one, other in zip(found, wanted[batch], strict=True):
                        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

        in_threads(32, ask)
        labels = LABELS.format("module_mlp")
        batches = gauge(server, f"mxrt_batch_rows_count{{{labels}}}")
        assert batches > 0
        assert gauge(server, f"mxrt_batch_rows_sum{{{labels}}}") >= 2 * batches
        assert gauge(server, f'mxrt_requests_total{{{labels},outcome="success"}}') == 32 * 60 + 2
        assert gauge(server, "mxrt_queue_requests") == 0


def test_the_metadata_says_why_nothing_is_joined(mx) -> None:
    models = {
        "switched_off": served(mx, "module_mlp", "off"),
        "fixed": mx.serve.Model(MODELS / "module_mlp", shapes={"data": [2, 64]}, batch=8),
        "costly_rows": served(mx, "digits_cnn", "auto"),
    }
    with mx.serve.Server(models, port=0) as server:
        assert said(server, "switched_off") == "off: it is switched off"
        assert said(server, "fixed").startswith("off: the inputs have a fixed number of rows; -1 as the first extent")
        assert said(server, "costly_rows").startswith(("off: rows cost more", "at most 16 rows"))
        with contextlib.closing(connect(server)) as connection:
            about = json.loads(exchange(connection, "/v2/models/switched_off")[1])
        assert about["parameters"]["batch"] == "off: it is switched off"


@pytest.mark.parametrize("batch", [0, 1, -2, "on", True, 2.5])
def test_what_is_no_choice_of_batches_is_an_error(mx, batch) -> None:
    with pytest.raises(mx.base.MXNetError, match="batch is"):
        mx.serve.Server({"mlp": served(mx, "module_mlp", batch)}, port=0)


def test_exact_bits_are_those_of_rows_alone_or_nothing_is_joined(mx) -> None:
    settings = {"batch": 4, "sizes": [4], "batch_bits": "exact"}
    shapes = {"data": [-1, *meta("module_mlp")["inputs"][0]["shape"][1:]]}
    model = mx.serve.Model(MODELS / "module_mlp", shapes=shapes, **settings)
    wanted = called(mx, "module_mlp", 1)
    with mx.serve.Server({"module_mlp": model}, port=0) as server:
        words = said(server, "module_mlp")
        assert words in (
            "at most 4 rows; rows have the bits that they have alone",
            "off: the bits of a row depend on how many are computed together",
        )

        def ask(number: int) -> None:
            for _ in range(20):
                assert same(asked(server, "module_mlp", golden("module_mlp", 1)), wanted)

        in_threads(8, ask)
        joined = gauge(server, f"mxrt_batch_rows_count{{{LABELS.format('module_mlp')}}}")
        assert (joined > 0) == words.startswith("at most")


def test_a_lone_request_waits_for_others_where_that_is_set(mx) -> None:
    model = served(mx, "module_mlp", 4)
    model.settings["max_delay"] = 3600
    with mx.serve.Server({"module_mlp": model}, port=0) as server:
        # A full batch does not wait.
        in_threads(4, lambda _: asked(server, "module_mlp", golden("module_mlp", 1)))
        labels = LABELS.format("module_mlp")
        assert gauge(server, f"mxrt_batch_rows_sum{{{labels}}}") == 4
    model.settings["max_delay"] = 0.2
    with mx.serve.Server({"module_mlp": model}, port=0) as server:
        began = time.monotonic()
        assert same(asked(server, "module_mlp", golden("module_mlp", 1)), called(mx, "module_mlp", 1))
        assert time.monotonic() - began >= 0.2


def test_rows_of_requests_are_counted(mx) -> None:
    with mx.serve.Server({"digits_cnn": served(mx, "digits_cnn", "off")}, port=0) as server:
        for rows in (1, 3, 3):
            asked(server, "digits_cnn", golden("digits_cnn", rows))
        with contextlib.closing(connect(server)) as connection:
            stats = json.loads(exchange(connection, "/v2/models/digits_cnn/stats")[1])["model_stats"][0]
        rows = gauge(server, f"mxrt_rows_total{{{LABELS.format('digits_cnn')}}}")
    assert (stats["inference_count"], stats["inference_stats"]["success"]["count"], rows) == (7, 3, 7)


def test_calls_of_the_model_are_counted_beside_requests(mx) -> None:
    with mx.serve.Server({"module_mlp": served(mx, "module_mlp", 8)}, port=0) as server:
        in_threads(16, lambda _: [asked(server, "module_mlp", golden("module_mlp", 1)) for _ in range(20)])
        with contextlib.closing(connect(server)) as connection:
            stats = json.loads(exchange(connection, "/v2/models/module_mlp/stats")[1])["model_stats"][0]
        labels = LABELS.format("module_mlp")
        batches, rows = (gauge(server, f"mxrt_batch_rows_{what}{{{labels}}}") for what in ("count", "sum"))
    assert stats["inference_count"] == 320
    assert stats["execution_count"] == 320 - rows + batches
    assert stats["inference_stats"]["queue"]["count"] == 320


def test_calls_of_a_network_are_joined(mx) -> None:
    symbol, params = files("module_mlp")
    net = mx.gluon.SymbolBlock.imports(symbol, ["data", "softmax_label"], params)
    arrays = {rows: [mx.nd.array(a) for a in golden("module_mlp", rows)] for rows in (1, 3)}
    labels = {rows: mx.nd.zeros((rows,)) for rows in arrays}
    wanted = {rows: net(*arrays[rows], labels[rows]).asnumpy() for rows in arrays}
    joined = mx.serve.Batcher(net, rows=8)

    def call(number: int) -> None:
        for turn in range(100):
            rows = (1, 3)[(number + turn) % 2]
            np.testing.assert_allclose(
                joined(*arrays[rows], labels[rows]).asnumpy(), wanted[rows], rtol=1e-5, atol=1e-6
            )

    # On a busy machine no two calls may meet for a while.
    for _ in range(20):
        in_threads(8, call)
        if joined.counts[0] > 0:
            break
    batches, rows = joined.counts
    assert batches > 0 and 2 * batches <= rows
    with pytest.raises(mx.base.MXNetError):
        joined(mx.nd.zeros((1, 5)), labels[1])
    call(0)
    with pytest.raises(ValueError, match="2 rows or more"):
        mx.serve.Batcher(net, rows=1)(*arrays[1], labels[1])
    mean = mx.gluon.SymbolBlock(mx.sym.mean(mx.sym.var("x"), axis=0, keepdims=True), [mx.sym.var("x")])
    with pytest.raises(ValueError, match="depend on each other"):
        mx.serve.Batcher(mean)(mx.nd.zeros((2, 3)))


def test_a_call_that_waits_for_others_heeds_signals_and_its_deadline() -> None:
    code = """
    import json, signal, threading
    import mxrt as mx

    net = mx.gluon.SymbolBlock(mx.sym.var("data") * 2, mx.sym.var("data"))
    joined = mx.serve.Batcher(net, rows=2, max_delay=3600)
    row = mx.nd.ones((1, 3))

    class Stopped(Exception):
        pass

    seen = []

    def stop(number, frame):
        # It waits when it has been here for a while.
        seen.append(frame.f_code.co_name)
        if seen[-3:] == ["__call__"] * 3:
            raise Stopped

    said = []
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        joined(row)
    except Stopped:
        said.append("stopped")
    signal.setitimer(signal.ITIMER_REAL, 0)

    def late():
        try:
            joined(row, deadline=0.01)
        except mx.base.MXNetError as error:
            said.append([type(error).__name__, str(error)])

    late()
    thread = threading.Thread(target=late)
    thread.start()
    thread.join()
    # Those who have left are not part of the next batch.
    found = []
    threads = [threading.Thread(target=lambda: found.append(joined(row).asnumpy().tolist())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([said, found, joined.counts]))
    """
    said, found, counts = last_json(run_python(code))
    words = "the deadline passed before the result was there [MX-TIME]"
    assert said == ["stopped", *[["MXNetTimeoutError", words]] * 2]
    assert (found, counts) == ([[[2.0] * 3]] * 2, [1, 2])


def test_members_of_a_batch_without_memory_are_computed_alone() -> None:
    # Their calls are the first ones of the batcher. No batch begins before there are eight.
    code = """
    import json, sys, threading
    import numpy as np
    import mxrt as mx

    sys.setswitchinterval(1e-6)
    # Without weights, whose packing frees memory some time later.
    random = np.random.RandomState(0)
    large = mx.sym.UpSampling(mx.sym.var("data"), scale=56, sample_type="nearest")
    symbol = mx.sym.Pooling(large, kernel=(448, 448), pool_type="avg", pooling_convention="valid")
    net = mx.gluon.SymbolBlock(symbol, mx.sym.var("data"))
    rows = [mx.nd.array(random.uniform(-1, 1, (1, 1, 8, 8))) for _ in range(8)]
    wanted = [net(row).asnumpy() for row in rows]

    def batcher() -> mx.serve.Batcher:
        return mx.serve.Batcher(net, rows=8, max_delay=3600)

    def answers(joined: mx.serve.Batcher) -> list[bool]:
        found, start = [False] * 8, threading.Barrier(8)

        def call(number: int) -> None:
            start.wait()
            found[number] = np.array_equal(joined(rows[number]).asnumpy(), wanted[number])

        threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    # A row takes 0.8 MB while it is computed.
    mx.cpu().set_memory_limit(mx.cpu().memory_info()["in_use"] + 4_000_000)
    batchers = [batcher() for _ in range(20)]
    alone = [(answers(joined), joined.counts) for joined in batchers]
    mx.cpu().set_memory_limit(None)
    print(json.dumps([alone, len(answers(joined := batcher())), joined.counts]))
    """
    assert last_json(run_python(code)) == [[[[True] * 8, [0, 0]]] * 20, 8, [1, 8]]
