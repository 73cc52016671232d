"""`mxrt serve`: no model, client, file or reader of lines keeps the others from being served."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

import pytest

from serving import connect, digit, exchange, gauge, in_the_end, post, raw, read_all, symbol_in, wait_until
from serving_grpc import ask as ask_grpc
from serving_grpc import channel, refused
from serving_hostile import Grpc, field, frame, tcp
from support import DIGITS, run_python
from test_serve_ends import command


def test_a_model_that_does_not_serve_keeps_no_other_one_over_grpc(mx, tmp_path) -> None:
    from test_serve_repository import place

    place(tmp_path / "good/1")
    broken = place(tmp_path / "broken/1")
    next(broken.glob("*.params")).write_bytes(b"nothing")
    with mx.serve.Server(repository=tmp_path, port=0) as server, channel(server) as made:
        assert not ask_grpc(made, "ServerReady").ready
        tensor = {"name": "data", "datatype": "FP32", "shape": [1, 1, 8, 8]}
        ask_grpc(made, "ModelInfer", model_name="good", inputs=[tensor], raw_input_contents=[bytes(256)])
        with refused("UNAVAILABLE", "broken"):
            ask_grpc(made, "ModelInfer", model_name="broken", inputs=[tensor], raw_input_contents=[bytes(256)])


def test_health_without_a_token_takes_nothing_of_the_queue(mx, tmp_path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("a-token-of-the-tests\n")
    same = mx.serve.Model(symbol_in(mx.sym.identity(mx.sym.var("x")), tmp_path), shapes={"x": [-1, 4]})
    token = {"Authorization": "Bearer a-token-of-the-tests"}
    with (
        mx.serve.Server({"same": same}, port=0, tokens=tokens, queue_bytes=100_000) as server,
        contextlib.ExitStack() as opened,
    ):

        def gauges() -> dict[str, float]:
            with contextlib.closing(connect(server)) as connection:
                lines = exchange(connection, "/metrics", headers=token)[1].decode().splitlines()
            return {name: float(value) for name, _, value in (line.partition(" ") for line in lines if line[0] != "#")}

        for _ in range(8):
            call = Grpc(tcp(server.grpc))
            opened.callback(call.close)
            # Half of a message of 60,000 bytes.
            call.stream.sendall(call_head("/grpc.health.v1.Health/Check"))
            call.body(b"\x00" + (60_000).to_bytes(4, "big") + bytes(30_000), last=False)
        wait_until(lambda: gauges()["mxrt_call_bytes"] >= 8 * 25_000)
        assert gauges()["mxrt_queue_bytes"] == 0
        body = json.dumps({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0] * 4}]})
        assert post(server, body, token, "same")[0] == 200


def call_head(path: str) -> bytes:
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"here")]
    return frame(1, 4, 1, b"".join(field(*pair) for pair in [*fields, *Grpc.extra]))


def test_changes_that_wait_for_each_other_keep_no_thread(mx, tmp_path) -> None:
    """A model whose hooks wait when they are loaded; reading a large request needs a thread."""
    from test_serve_repository import place, repository

    (tmp_path / "models").mkdir()
    same = mx.serve.Model(symbol_in(mx.sym.identity(mx.sym.var("x")), tmp_path), shapes={"x": [-1, -1]})
    with (
        mx.serve.Server({"same": same}, repository=tmp_path / "models", port=0, control="explicit") as server,
        concurrent() as pool,
    ):
        slow = place(tmp_path / "models/slow/1", 'hooks = "hooks.py"\n')
        gate = tmp_path / "open"
        (slow / "hooks.py").write_text(
            f"import os, time\nopen({str(tmp_path / 'loading')!r}, 'w').close()\n"
            f"while not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n"
            "def preprocess(request): return None\n"
        )
        asked = [pool.submit(repository, server, "slow/load") for _ in range(20)]
        try:
            wait_until((tmp_path / "loading").exists)
            tensor = {"name": "x", "shape": [1, 50_000], "datatype": "FP32", "data": [0] * 50_000}
            more = {"parameters": {"binary_data_output": True}}
            with contextlib.closing(connect(server)) as connection:
                path = "/v2/models/same/infer"
                assert exchange(connection, path, json.dumps({"inputs": [tensor], **more}))[0].status == 200
            assert not any(one.done() for one in asked)
        finally:
            gate.touch()
        assert {one.result()[0] for one in asked} == {200}


def concurrent() -> Any:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(20)


def test_a_request_with_a_hook_knows_the_queue_and_its_deadline(mx, tmp_path) -> None:
    same = symbol_in(mx.sym.identity(mx.sym.var("x")), tmp_path)
    gate = tmp_path / "open"
    called = tmp_path / "called"
    (tmp_path / "hooks.py").write_text(
        f"import os, time\nimport numpy as np\ndef preprocess(request):\n    open({str(called)!r}, 'w').close()\n"
        f"    while not os.path.exists({str(gate)!r}):\n        time.sleep(0.01)\n"
        "    return np.zeros((1, 4), 'float32')\n"
    )
    models = {
        name: mx.serve.Model(same, shapes={"x": [-1, 4]}, hooks=tmp_path / "hooks.py", deadline=deadline)
        for name, deadline in (("late", 0.05), ("patient", None))
    }

    def asked(name: str) -> int:
        with contextlib.closing(connect(server)) as connection:
            return exchange(connection, f"/models/{name}/infer", b"x")[0].status

    with mx.serve.Server(models, port=0, queue_requests=2) as server, concurrent() as pool:
        try:
            # On a busy machine it may be late before its hook begins.
            while not called.exists():
                assert asked("late") == 504
                wait_until(lambda: called.exists() or gauge(server, "mxrt_queue_requests") == 0)
            # Its hook goes on, and keeps its place.
            first = pool.submit(asked, "patient")
            wait_until(lambda: gauge(server, "mxrt_queue_requests") == 2)
            assert asked("patient") == 429
        finally:
            gate.touch()
        assert first.result() == 200
        wait_until(lambda: gauge(server, "mxrt_queue_requests") == 0)


def test_a_model_that_can_never_fit_unloads_nobody(mx, tmp_path) -> None:
    from test_serve_repository import place

    for name in ("a", "b", "c"):
        place(tmp_path / f"{name}/1")
    params = next((tmp_path / "c/1").glob("*.params"))
    size = params.stat().st_size
    with open(params, "ab") as large:
        large.truncate(100 * size)
    code = """
    import sys
    import mxrt as mx

    mx._mxrt.set_memory_limit(5 * int(sys.argv[2]))
    with mx.serve.Server(repository=sys.argv[1], port=0, evict="lru") as server:
        for entry in server.index:
            print(entry["name"], entry["state"], entry["reason"])
    """
    result = run_python(code, tmp_path, size)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[1] for line in lines] == ["READY", "READY", "UNAVAILABLE"], lines
    assert "all models that may make room have about" in lines[2]


def test_a_port_ends_also_where_a_child_has_a_copy(mx) -> None:
    code = """
    import os, socket, sys
    import mxrt as mx

    server = mx.serve.Server(sys.argv[1], port=0).start()
    host, port = server.url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), timeout=30)
    client.sendall(b"GET /v2/health/live HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n")
    assert client.recv(1000)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent ends
        os._exit(0)
    server.stop(0)
    assert client.recv(1) == b"", "the connection has ended"
    try:
        socket.create_connection((host, int(port)), timeout=30)
    except ConnectionRefusedError:
        print("refused")
    with mx.serve.Server(sys.argv[1], port=int(port), grpc_port=None):
        print("again")
    """
    result = run_python(code, DIGITS)
    assert result.stdout == "refused\nagain\n", result


def test_what_begins_like_http2_has_the_time_of_a_head(mx) -> None:
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, header_timeout=1) as server:
        for start in (b"PRI /x HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n", b"PR"):
            with raw(server) as connection:
                connection.sendall(start)
                read_all(connection)

        def answered() -> None:
            assert post(server, digit())[0] == 200

        in_the_end(answered)


def test_a_pipe_is_no_file_of_a_model(mx, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for key in ("golden", "labels", "hooks"):
        model = mx.serve.Model(DIGITS, shapes={"data": [-1, 1, 8, 8]}, **{key: tmp_path / "pipe.py"})
        with pytest.raises(mx.MXNetError, match="no regular file"):
            mx.serve.Server({"digits_cnn": model}, port=0).start()
    with pytest.raises(mx.MXNetError, match="no regular file"):
        mx.serve.Server(DIGITS, port=0, tokens=tmp_path / "pipe.py").start()


def test_nobody_waits_for_lines_that_are_not_read() -> None:
    with command(f"digits_cnn={DIGITS}", "--shape", "-1,1,8,8", "--log-requests", "on", "--port", "0") as started:
        _, server, _ = started
        # A pipe has 64 KiB, which are full after some hundred lines.
        with contextlib.closing(connect(server)) as connection:
            for _ in range(2000):
                response, _ = exchange(connection, "/v2/models/digits_cnn/infer", digit())
                assert response.status == 200


def test_a_version_is_compared_with_its_own_files_alone(mx, tmp_path) -> None:
    """Another model of the folder may be wrong while one is loaded."""
    from test_serve_repository import place, repository

    (tmp_path / "models").mkdir()
    with mx.serve.Server(repository=tmp_path / "models", port=0, control="explicit") as server, concurrent() as pool:
        slow = place(tmp_path / "models/slow/1", 'hooks = "hooks.py"\n')
        gate = tmp_path / "open"
        (slow / "hooks.py").write_text(
            f"import os, time\nopen({str(tmp_path / 'loading')!r}, 'w').close()\n"
            f"while not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n"
            "def preprocess(request): return None\n"
        )
        asked = pool.submit(repository, server, "slow/load")
        try:
            wait_until((tmp_path / "loading").exists)
            # Two models of one name, for which the folder as a whole cannot be read.
            (tmp_path / "models/twice").mkdir()
            (tmp_path / "models/twice.zip").write_bytes(b"")
        finally:
            gate.touch()
        assert asked.result() == (200, "{}")


def test_an_error_is_said_once_and_again_when_it_is_another(mx, tmp_path, capfd) -> None:
    from test_serve_repository import place, states

    wrong = place(tmp_path / "wrong/1", "versions = [7]\n")
    place(tmp_path / "good/1")
    with mx.serve.Server(repository=tmp_path, port=0, control="poll", poll=0.05) as server:
        # Two looks later, at least.
        for version in ("2", "3"):
            place(tmp_path / f"good/{version}")
            wait_until(lambda version=version: states(server).get(("good", version), ("", ""))[0] == "READY")
        (wrong / "mxrt.toml").write_text("versions = [8]\n")
        place(tmp_path / "good/4")
        wait_until(lambda: states(server).get(("good", "4"), ("", ""))[0] == "READY")
        wait_until(lambda: "versions 8" in states(server)[("wrong", "1")][1])
    said = capfd.readouterr().err
    assert said.count("none of the versions 7") == 1, said
    assert said.count("none of the versions 8") == 1, said
