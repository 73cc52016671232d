"""`mxrt serve`: every request has an end; the command, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from serving import (
    Gate,
    answer,
    called,
    connect,
    digit,
    exchange,
    gauge,
    golden,
    head,
    post,
    raw,
    request,
    same,
    wait_until,
)
from support import DIGITS, WORK, in_threads, mxrt, run, run_python


@pytest.fixture
def gate(mx, tmp_path) -> Iterator[Gate]:
    made = Gate(mx, tmp_path)
    yield made
    made.pass_through(100)


def gate_body(value: float, **parameters: int) -> str:
    tensor = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [value]}
    return json.dumps({"inputs": [tensor], "parameters": parameters})


def test_a_signal_that_comes_with_its_handler_is_not_lost() -> None:
    code = """
    import os, signal, sys
    import mxrt as mx

    install = signal.signal
    def with_a_signal(number, handler):
        before = install(number, handler)
        if number == signal.SIGTERM and callable(handler):
            os.kill(os.getpid(), number)
        return before
    signal.signal = with_a_signal
    model = mx.serve.Model(sys.argv[1], shapes={"data": [-1, 1, 8, 8]})
    sys.exit(mx.serve.Server(model, port=0).run())
    """
    result = run_python(code, DIGITS, timeout=20)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_full_queue_refuses_at_once(mx, gate) -> None:
    with (
        mx.serve.Server({"gate": gate.model, "digits_cnn": DIGITS}, port=0, queue_requests=1) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(post, running, gate_body(1), None, "gate")
        wait_until(lambda: gauge(running, "mxrt_queue_requests") == 1)
        with contextlib.closing(connect(running)) as connection:
            response, data = exchange(connection, "/v2/models/digits_cnn/infer", digit())
            assert (response.status, response.headers["Retry-After"]) == (429, "1"), data
            assert exchange(connection, "/v2/health/ready")[0].status == 429
            assert exchange(connection, "/v2/health/live")[0].status == 200
        gate.pass_through(1)
        assert waiting.result()[0] == 200
        assert post(running, digit())[0] == 200


def test_bytes_are_bounded_too(mx, good) -> None:
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, queue_bytes=1000) as running:
        body, headers = request(["data"], golden("digits_cnn", 16))
        status, text = post(running, body, headers)
        assert (status, "1000 bytes" in text) == (429, True), text
        assert gauge(running, "mxrt_queue_bytes") == 0
        body, headers = request(["data"], golden("digits_cnn", 1))
        assert post(running, body, headers)[0] == 200


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """Threads of this process occasionally wait for a core."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.wait()


def test_the_failure_of_a_request_that_was_given_up_reaches_no_other_wait(mx, gate) -> None:
    with busy_cores():
        for microseconds in range(1, 2000, 25):
            # The first call of a model starts in a thread that builds its plan.
            with mx.serve.Server({"gate": gate.model}, port=0) as running:
                gate.opened.release()
                assert post(running, gate_body(3, timeout=microseconds), model="gate")[0] in (200, 504)
    mx.nd.waitall()


def test_a_request_has_an_end_by_its_timeout_or_the_servers(mx, gate) -> None:
    with mx.serve.Server({"gate": gate.model}, port=0) as running:
        status, text = post(running, gate_body(1, timeout=50_000), model="gate")
        assert (status, "deadline" in text) == (504, True), text
        status, _ = post(running, gate_body(7, timeout=1), model="gate")
        assert status == 504
        gate.pass_late(running, 1)
        gate.pass_through(1)
        assert post(running, gate_body(2, timeout=60_000_000, priority=1), model="gate")[0] == 200
    assert 7.0 not in gate.entered, "it was late before it could start"
    with mx.serve.Server({"gate": gate.model}, port=0, deadline=0.05) as running:
        assert post(running, gate_body(3), model="gate")[0] == 504
        gate.pass_late(running, 3)
        gate.pass_through(1)
        assert post(running, gate_body(4, timeout=60_000_000), model="gate")[0] == 200


def test_a_client_that_goes_away_gives_its_place_back_when_its_call_has_ended(mx, gate) -> None:
    gate.model.settings["calls"] = 1
    with mx.serve.Server({"gate": gate.model}, port=0, queue_requests=2) as running:
        bodies = [gate_body(value).encode() for value in (1, 2)]
        with raw(running) as computing, raw(running) as waiting:
            for number, (connection, body) in enumerate(zip((computing, waiting), bodies, strict=True), 1):
                connection.sendall(head(len(body)).replace(b"digits_cnn", b"gate") + body)
                wait_until(lambda number=number: gauge(running, "mxrt_queue_requests") == number)
            wait_until(lambda: gate.entered == [1.0])
        labels = 'model="gate",version="1",outcome="cancelled"'
        wait_until(lambda: gauge(running, f"mxrt_requests_total{{{labels}}}") == 2)
        # The one that waited has gone; the other one's operator goes on.
        wait_until(lambda: gauge(running, "mxrt_queue_requests") == 1)
        gate.pass_through(1)
        wait_until(lambda: gauge(running, "mxrt_queue_requests") == 0)
        gate.pass_through(1)
        assert post(running, gate_body(3), model="gate")[0] == 200
    assert gate.entered == [1.0, 3.0]


def test_a_failing_operator_fails_its_request_and_is_named(mx, gate) -> None:
    with mx.serve.Server({"gate": gate.model}, port=0) as running:
        status, text = post(running, gate_body(-1), model="gate")
        assert status == 500
        assert "a value below 0" in text and "gate" in text
        assert str(WORK) not in text
        gate.pass_through(1)
        assert post(running, gate_body(1), model="gate")[0] == 200


def test_the_end_waits_for_requests_that_have_begun(mx, gate) -> None:
    running = mx.serve.Server({"gate": gate.model}, port=0).start()
    with ThreadPoolExecutor(2) as pool, contextlib.closing(connect(running)) as connection:
        begun = pool.submit(post, running, gate_body(1), None, "gate")
        wait_until(lambda: gauge(running, "mxrt_queue_requests") == 1)
        url = running.url
        assert exchange(connection, "/v2/health/ready")[0].status == 200
        stopping = pool.submit(running.stop, 60)
        wait_until(lambda: exchange(connection, "/v2/health/ready")[0].status == 503)
        response, data = exchange(connection, "/v2/models/gate/infer", gate_body(2))
        assert (response.status, response.headers["Retry-After"]) == (503, "1"), data
        assert not stopping.done()
        gate.pass_through(1)
        assert begun.result()[0] == 200
        assert stopping.result() is True
    host, port = url.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=10)
    assert gate.entered == [1.0]


@contextlib.contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen, Any, str]]:
    """A running `mxrt serve`, its address and its first line."""
    WORK.mkdir(parents=True, exist_ok=True)
    child = subprocess.Popen(
        [sys.executable, "-m", "mxrt", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=WORK,
    )
    try:
        line = child.stdout.readline()
        found = re.search(r" at (http://[^;]+);", line)
        assert found, line + child.stderr.read()
        yield child, type("Address", (), {"url": found[1]}), line
    finally:
        child.kill()
        child.communicate()


def test_the_command_says_what_to_paste_and_ends_by_a_signal(good) -> None:
    symbol = str(DIGITS / "digits_cnn-symbol.json")
    with command(symbol, "--port", "0", "--shape=-1,1,8,8") as (child, running, line):
        assert line.startswith("digits_cnn: data FP32[-1, 1, 8, 8] at http://127.0.0.1:")
        good(running)
        if shutil.which("curl"):
            pasted = run(["bash", "-c", line.split("; try: ")[1]])
            assert json.loads(pasted.stdout)["outputs"][0]["shape"] == [1, 10], pasted
        child.send_signal(signal.SIGTERM)
        assert (child.wait(60), child.stderr.read()) == (0, "")


def test_the_command_says_what_to_paste_for_a_model_that_takes_strings(tmp_path) -> None:
    hooks = tmp_path / "hooks.py"
    hooks.write_text(
        "import numpy as np\n"
        'INPUTS = {"text": ("BYTES", [-1, 2])}\n'
        'def decode(tensors): return np.zeros((len(tensors["text"]), 1, 8, 8), "float32")\n'
    )
    symbol = str(DIGITS / "digits_cnn-symbol.json")
    with command(symbol, "--port", "0", "--shape=-1,1,8,8", "--hooks", str(hooks)) as (child, running, line):
        assert line.startswith("digits_cnn: text BYTES[-1, 2] at http://127.0.0.1:")
        assert line.endswith(f"; try: curl -s '{running.url}/v2/models/digits_cnn'\n"), line
        child.send_signal(signal.SIGTERM)
        assert (child.wait(60), child.stderr.read()) == (0, "")


def test_a_signal_under_load_loses_nothing_that_has_begun(mx) -> None:
    wanted = called(mx, "digits_cnn", 3)
    body, headers = request(["data"], golden("digits_cnn", 3), parameters={"binary_data_output": True})
    with command(f"digits_cnn={DIGITS}", "--port", "0") as (child, running, _):
        answered = []

        def ask(number: int) -> None:
            connection = connect(running)
            with contextlib.closing(connection):
                while True:
                    try:
                        response, data = exchange(connection, "/v2/models/digits_cnn/infer", body, headers)
                    # The connection was idle when it was closed, or there is no server any more.
                    except (ConnectionError, http.client.RemoteDisconnected):
                        return
                    if response.status == 503:
                        return
                    assert same(answer(response, data)[1], wanted)
                    answered.append(number)
                    if len(answered) == 500:
                        child.send_signal(signal.SIGTERM)

        in_threads(16, ask)
        assert child.wait(60) == 0
        assert len(answered) >= 500


# Signals the command as soon as it has said where it listens.
SIGNALLED_AT_ONCE = """
import os, sys
from mxrt.cli._main import main
from mxrt.serve import _command

say = _command._say_where_it_listens

def say_and_signal(server, as_json):
    say(server, as_json)
    os.kill(os.getpid(), int(sys.argv[1]))

_command._say_where_it_listens = say_and_signal
sys.exit(main(["serve", sys.argv[2], "--port", "0"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_address_was_said_lets_requests_end(number) -> None:
    done = run([sys.executable, "-c", SIGNALLED_AT_ONCE, str(int(number)), str(DIGITS)])
    assert (done.returncode, "interrupted" in done.stderr) == (0, False), done.stderr


def test_a_second_signal_ends_the_process_at_once(tmp_path) -> None:
    # A request that has begun and does not come to its end holds the first signal up.
    with command(str(DIGITS), "--port", "0", "--grace", "1000") as (child, running, _), raw(running) as begun:
        begun.sendall(head(1000) + b"{")
        wait_until(lambda: gauge(running, "mxrt_queue_bytes") == 1)
        with contextlib.closing(connect(running)) as connection:
            # A connection with an answer is open; one that is being made may be reset.
            assert exchange(connection, "/v2/health/ready")[0].status == 200
            child.send_signal(signal.SIGINT)
            wait_until(lambda: exchange(connection, "/v2/health/ready")[0].status == 503)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 128 + signal.SIGINT


def test_ten_thousand_idle_connections_cost_no_answers(good) -> None:
    """The command takes as many as the system allows, whatever limit it is started with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 10_000 if hard == resource.RLIM_INFINITY else min(10_000, hard - 200)
    if count < 1000:
        pytest.skip(f"the system allows {hard} open files")
    options = ["--port", "0", "--header-timeout", "1000"]
    with command(str(DIGITS), *options) as (_, running, _), contextlib.ExitStack() as idle:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 200), hard))
        idle.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(count):
            idle.enter_context(raw(running))
        wait_until(lambda: gauge(running, "mxrt_connections") >= count)
        good(running)


def test_what_the_command_cannot_do_it_says_in_a_line(mx, server, tmp_path) -> None:
    port = server.url.rpartition(":")[2]
    digits = str(DIGITS)
    cases = {
        (digits, "--port", port): "another program does; name another port (--port)",
        (str(tmp_path),): "holds no model: expected a file *-symbol.json, found",
        (str(tmp_path / "none"),): "there is no file",
        (__file__,): "is no model: a model is PREFIX,",
        (digits, digits): "two models have the name 'digits_cnn'",
        (f"a/b=c={digits}",): "there is no file",
        (digits, "--shape", "1,x"): "whole numbers",
        (digits, "--shape", "other=1,2"): "there is no input 'other'; the inputs are 'data'",
        (digits, "--shape", "1,2"): "digits_cnn",
        (digits, "--dtype", "data=float33"): "unknown dtype 'float33'",
        (f"a={digits}", f"b={digits}", "--shape", "1,2"): "say which of a, b is meant",
        ("--version", "1"): "--version 1: no model is named, and those that come later have settings of their own",
        (digits, "--port", "70000"): "--port is 70000",
        (digits, "--queue-requests", "0"): "--queue-requests is 0",
        (digits, "--batch", "1"): "--batch is 1; expected",
        (digits, "--config", "no.toml"): "--config 'no.toml': there is no such file; expected a file",
        ("--repository", "no"): "--repository 'no': there is no such folder; expected a folder",
        (digits, "--tls-certificate", "no", "--tls-key", "no"): "--tls-certificate 'no': there is no such file",
        (digits, "--tokens", "no"): "--tokens 'no': there is no such file",
        (digits, "--batch", "often"): "--batch is often; expected",
        (digits, "--batch", "other=8"): "there is no model 'other'",
        ("model.onnx",): "is a model of ONNX",
        (): "there is no model to be served",
    }
    for arguments, words in cases.items():
        result = mxrt("serve", *arguments)
        # What a model or the machine lacks is no mistake of the command line.
        found = ("another program", "is no model", "is a model of ONNX", "there is no input", "digits_cnn")
        status = 1 if words.startswith(found) else 2
        assert (result.returncode, result.stdout) == (status, ""), (arguments, result)
        assert re.match(r"mxrt serve: .*\n$", result.stderr) and words in result.stderr, (arguments, result.stderr)


def test_check_loads_and_ends(mx) -> None:
    shapes = [f"--shape={name}:-1,1,8,8" for name in "ab"]
    result = mxrt("serve", f"a={DIGITS}", f"b={DIGITS}", *shapes, "--check")
    assert (result.returncode, result.stderr) == (0, "")
    names = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert names == ["a", "b", "# batch of a", "# batch of b"]


def test_options_of_an_input_may_name_model_and_input(mx) -> None:
    model = f"d={DIGITS}"
    for shape in ("d:data=-1,1,8,8", "data=-1,1,8,8", "d:-1,1,8,8", "-1,1,8,8"):
        result = mxrt(
            "serve",
            model,
            "--shape",
            shape,
            "--dtype=d:data=float32",
            f"--params=d={DIGITS / 'digits_cnn-0000.params'}",
            "--check",
        )
        assert (result.returncode, result.stderr) == (0, ""), (shape, result)
        assert result.stdout.startswith("d: data FP32[-1, 1, 8, 8] at "), result.stdout


def test_a_server_in_a_child_ends_without_its_threads(mx) -> None:
    code = """
    import os, sys
    import mxrt as mx

    with mx.serve.Server(sys.argv[1], port=0) as server:
        child = os.fork()
        if child == 0:
            os._exit(0 if server.stop() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert server.models[0]["name"] == "digits_cnn"
    """
    result = run_python(code, DIGITS)
    assert result.returncode == 0, result.stderr


def test_importing_the_package_loads_nothing_of_the_server(mx) -> None:
    result = run_python("import sys, mxrt; print('mxrt.serve' in sys.modules, mxrt.serve.__name__)")
    assert result.stdout == "False mxrt.serve\n", result.stderr
