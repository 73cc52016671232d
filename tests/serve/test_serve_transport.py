"""`mxrt serve`: HTTP/2, TLS, tokens, Unix sockets, sockets of systemd, and limits on them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from serving import (
    answer,
    called,
    connect,
    digit,
    exchange,
    gauge,
    golden,
    head,
    in_the_end,
    post,
    raw,
    read_all,
    request,
    same,
    wait_until,
)
from serving_grpc import arrays_of, ask, channel, infer_fields, refused
from support import DIGITS, ROOT, mxrt, run

KEYS = ROOT / "tests/serve/tls"
TOKEN = "a-token-of-the-tests"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")


def frame(kind: int, flags: int = 0, stream: int = 0, content: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


SETTINGS = frame(4)


def field(name: bytes, value: bytes) -> bytes:
    """A header, without compression."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def curl(*arguments: str, data: bytes | None = None) -> bytes:
    command = ["curl", "-sS", "--max-time", "60", *arguments]
    if data is not None:
        command += ["--data-binary", "@-"]
    made = subprocess.run(command, input=data, capture_output=True, timeout=90, check=False)
    assert made.returncode == 0, made.stderr.decode()
    return made.stdout


def binary_of(text: bytes) -> list[np.ndarray]:
    """Arrays of a binary answer with its one output."""
    end = text.index(b"]}") + 2
    return [np.frombuffer(text[end:], "float32").reshape(json.loads(text[:end])["outputs"][0]["shape"])]


@pytest.fixture
def keys(tmp_path) -> tuple[Path, Path]:
    """Certificate and key of a server."""
    made = tmp_path / "server.pem", tmp_path / "server.key"
    for kind, file in zip(("pem", "key"), made, strict=True):
        shutil.copyfile(KEYS / f"first.{kind}", file)
    return made


def trusted(name: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(KEYS / f"{name}.pem"))


def get(url: str, path: str, trust: ssl.SSLContext, headers: dict[str, str] | None = None) -> int:
    host, port = url.removeprefix("https://").split(":")
    with contextlib.closing(http.client.HTTPSConnection(host, int(port), timeout=60, context=trust)) as connection:
        connection.request("GET", path, headers=headers or {})
        return connection.getresponse().status


@needs_curl
def test_http2_gives_the_bits_of_calls_with_and_without_tls(mx, server, good, keys) -> None:
    body, headers = request(["data"], golden("digits_cnn", 16), parameters={"binary_data_output": True})
    given = [f"-H{name}: {value}" for name, value in headers.items()]
    path = "/v2/models/digits_cnn/infer"
    wanted = called(mx, "digits_cnn", 16)
    said = curl("--http2-prior-knowledge", *given, server.url + path, data=body)
    assert same(binary_of(said), wanted)
    code = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"]
    assert curl("--http2-prior-knowledge", *code, f"{server.url}/v2/health/ready") == b"2 200"
    assert curl("--http2-prior-knowledge", *code, f"{server.url}/v2/models/none") == b"2 404"
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, tls_certificate=keys[0], tls_key=keys[1]) as running:
        trust = ["--cacert", str(keys[0])]
        assert running.url.startswith("https://")
        for version, option in ((b"2", "--http2"), (b"1.1", "--http1.1")):
            assert curl(option, *trust, *code, f"{running.url}/v2/health/ready") == version + b" 200"
            assert same(binary_of(curl(option, *trust, *given, running.url + path, data=body)), wanted)
    good()


# The head of a request, coded without compression.
READY = b"".join(
    field(*pair)
    for pair in ((b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/v2/health/ready"), (b":authority", b"here"))
)


def answered(connection: socket.socket, streams: tuple[int, ...]) -> None:
    """Reads until each of these streams of HTTP/2 has ended with an answer."""
    said = b""
    while sum(said.count(b"\x01\x05" + struct.pack(">I", stream)) for stream in streams) < len(streams):
        part = connection.recv(1 << 16)
        assert part, said
        said += part


def test_many_requests_of_one_connection_are_answered_at_a_time(mx, server) -> None:
    # Three requests in one write.
    with raw(server) as connection:
        connection.sendall(PREFACE + SETTINGS + b"".join(frame(1, 5, stream, READY) for stream in (1, 3, 5)))
        answered(connection, (1, 3, 5))


def test_requests_that_are_cancelled_together_end_no_other_one_of_their_connection(mx, server) -> None:
    cancel = struct.pack(">I", 8)
    given_up = b"".join(frame(1, 5, stream, READY) + frame(3, 0, stream, cancel) for stream in range(3, 403, 2))
    with raw(server) as connection:
        connection.sendall(PREFACE + SETTINGS + frame(1, 5, 1, READY) + given_up + frame(1, 5, 403, READY))
        answered(connection, (1, 403))


@pytest.mark.parametrize(
    "sent",
    [
        PREFACE,
        PREFACE + frame(4, 0, 1),
        PREFACE + SETTINGS + frame(1, 5, 1, b"\xff" * 50),
        PREFACE + SETTINGS + frame(0, 0, 1, b"data of no stream"),
        PREFACE + SETTINGS + frame(1, 0, 2, b""),
        PREFACE + SETTINGS + b"\xff" * 1000,
        PREFACE[:-4] + b"xxxx",
        PREFACE + SETTINGS + frame(9, 0, 1, b"x") * 100,
    ],
    ids=range(8),
)
def test_what_is_no_http2_ends_its_connection_alone(server, good, sent: bytes) -> None:
    for place in (server.url.removeprefix("http://"), server.grpc):
        host, port = place.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
            read_all(connection)
    good()


def test_there_is_no_port_of_grpc_after_the_last_one(mx) -> None:
    with pytest.raises(ValueError, match=r"no port after 65535 for gRPC: give one by grpc_port"):
        mx.serve.Server({"digits_cnn": DIGITS}, port=65535).start()


def test_slow_clients_are_sent_away_on_every_transport(mx, good, keys, tmp_path) -> None:
    limits = {"header_timeout": 1, "body_timeout": 1, "idle_timeout": 1}
    path = str(tmp_path / "http")
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, unix=path, **limits) as running, contextlib.ExitStack() as all:
        host, port = running.grpc.split(":")
        grpc_place = (host, int(port))
        opened = []
        for place, sent in (
            (None, PREFACE + SETTINGS),
            (None, PREFACE[:5]),
            (None, PREFACE + SETTINGS + frame(1, 1, 1, b"x" * 5)),
            (grpc_place, b""),
            (grpc_place, PREFACE + SETTINGS),
            (path, b""),
            (path, b"GET /v2 HTTP/1.1\r\n"),
        ):
            if isinstance(place, str):
                connection = all.enter_context(socket.socket(socket.AF_UNIX))
                connection.settimeout(60)
                connection.connect(place)
            elif place is None:
                connection = all.enter_context(raw(running))
            else:
                connection = all.enter_context(socket.create_connection(place, timeout=60))
            # On a busy machine it may have been sent away by now.
            with contextlib.suppress(OSError):
                connection.sendall(sent)
            opened.append(connection)
        # Frames that belong to no request do not keep a connection.
        with contextlib.suppress(OSError):
            for _ in range(40):
                opened[0].sendall(frame(6, 0, 0, bytes(8)))
                time.sleep(0.05)
        for connection in opened:
            read_all(connection)
        wait_until(lambda: in_the_end(lambda: gauge(running, "mxrt_connections")) == 1)
        in_the_end(lambda: good(running))
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, tls_certificate=keys[0], tls_key=keys[1], **limits) as running:
        host, port = running.url.removeprefix("https://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as silent:
            silent.sendall(b"\x16\x03\x01")
            assert read_all(silent) == b""
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            plain.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: here\r\n\r\n")
            assert not read_all(plain).startswith(b"HTTP/1.1 200")

        def answered() -> None:
            assert get(running.url, "/v2/health/live", trusted("first")) == 200

        in_the_end(answered)


def test_a_client_that_keeps_its_answer_does_not_keep_its_place(mx, good, tmp_path) -> None:
    mx.sym.tile(mx.sym.var("x"), reps=(1 << 20, 1)).save(str(tmp_path / "tiled-symbol.json"))
    tiled = mx.serve.Model(tmp_path, shapes={"x": [1, 1]})
    with mx.serve.Server({"tiled": tiled, "digits_cnn": DIGITS}, port=0, body_timeout=3) as running:
        text = json.dumps(
            {
                "inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [1]}],
                "parameters": {"binary_data_output": True},
            }
        ).encode()

        fields = [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/v2/models/tiled/infer"),
            (b":authority", b"here"),
        ]
        block = b"".join(field(*pair) for pair in fields)
        with raw(running) as connection:
            connection.sendall(PREFACE + SETTINGS + frame(1, 4, 1, block) + frame(0, 1, 1, text))
            said = read_all(connection)
            # As much as its window has, and then the end of the connection.
            assert 65_000 < len(said) < 200_000
        good(running)


def test_certificates_are_read_again_when_they_change(mx, keys) -> None:
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, tls_certificate=keys[0], tls_key=keys[1]) as running:
        assert get(running.url, "/v2", trusted("first")) == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            get(running.url, "/v2", trusted("second"))
        credentials = grpc.ssl_channel_credentials((KEYS / "first.pem").read_bytes())
        with grpc.secure_channel(running.grpc.replace("127.0.0.1", "localhost"), credentials) as secure:
            assert ask(secure, "ServerLive").live
            made = ask(secure, "ModelInfer", **infer_fields("digits_cnn", {"data": golden("digits_cnn", 3)[0]}))
            assert same(arrays_of(made), called(mx, "digits_cnn", 3))
        # A file that is not there yet, or is half written, changes nothing.
        keys[0].write_text("-----BEGIN CERTIFICATE-----\n")
        time.sleep(1.2)
        assert get(running.url, "/v2", trusted("first")) == 200
        for kind, file in zip(("key", "pem"), reversed(keys), strict=True):
            shutil.copyfile(KEYS / f"second.{kind}", file)

        def is_second() -> bool:
            try:
                return get(running.url, "/v2", trusted("second")) == 200
            except ssl.SSLError:
                time.sleep(0.2)
                return False

        wait_until(is_second)


def test_the_health_check_of_the_image_asks_with_and_without_tls(mx, keys) -> None:
    def healthy(port: str, **more: str) -> bool:
        done = run([sys.executable, str(ROOT / "deploy/health.py")], env={"MXRT_SERVE_PORT": port, **more})
        return done.returncode == 0

    secure = {"MXRT_SERVE_TLS_CERTIFICATE": str(keys[0])}
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0, tls_certificate=keys[0], tls_key=keys[1]) as running:
        port = running.url.rpartition(":")[2]
        assert healthy(port, **secure) and not healthy(port)
    with mx.serve.Server({"digits_cnn": DIGITS}, port=0) as running:
        port = running.url.rpartition(":")[2]
        assert healthy(port) and not healthy(port, **secure)
    assert not healthy(port)


def test_requests_need_a_token_where_there_are_tokens(mx, tmp_path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# of the tests\n{TOKEN}\n")
    with (
        mx.serve.Server({"digits_cnn": DIGITS}, port=0, tokens=file) as running,
        channel(running) as own,
        contextlib.closing(connect(running)) as connection,
    ):
        for given in ({}, {"Authorization": "Bearer other-token-of-tests"}, {"Authorization": f"Basic {TOKEN}"}):
            for path, body in (("/v2", None), ("/metrics", None), ("/v2/models/digits_cnn/infer", digit())):
                response, data = exchange(connection, path, body, given)
                assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer"), data
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert exchange(connection, path)[0].status == 200
        assert post(running, digit(), {"Authorization": f"Bearer {TOKEN}"})[0] == 200
        with refused("UNAUTHENTICATED", "token"):
            ask(own, "ServerLive")
        assert ask(own, "ServerLive", metadata=[("authorization", f"Bearer {TOKEN}")]).live
        file.write_text("another-token-of-tests\n")
        wait_until(lambda: post(running, digit(), {"Authorization": f"Bearer {TOKEN}"})[0] == 401)
        assert post(running, digit(), {"Authorization": "Bearer another-token-of-tests"})[0] == 200


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


def test_unix_sockets_carry_both_protocols(mx, tmp_path) -> None:
    paths = {"unix": str(tmp_path / "http"), "grpc_unix": str(tmp_path / "grpc")}
    # A server that was killed leaves its file.
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(paths["unix"])
    wanted = called(mx, "digits_cnn", 3)
    with mx.serve.Server({"digits_cnn": DIGITS}, port=None, **paths) as running:
        body, headers = request(["data"], golden("digits_cnn", 3), parameters={"binary_data_output": True})
        with contextlib.closing(UnixConnection(paths["unix"])) as connection:
            found = answer(*exchange(connection, "/v2/models/digits_cnn/infer", body, headers))[1]
        assert same(found, wanted)
        assert running.grpc == f"unix:{paths['grpc_unix']}"
        with channel(running) as own:
            made = ask(own, "ModelInfer", **infer_fields("digits_cnn", {"data": golden("digits_cnn", 3)[0]}))
            assert same(arrays_of(made), wanted)
        with pytest.raises(mx.MXNetError, match="cannot listen on"):
            mx.serve.Server({"digits_cnn": DIGITS}, port=None, **paths).start()
    assert not Path(paths["unix"]).exists() and not Path(paths["grpc_unix"]).exists()


@contextlib.contextmanager
def started(code: str, *arguments: str) -> Iterator[tuple[subprocess.Popen, str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/"
    )
    try:
        yield child, child.stdout.readline()
    finally:
        child.kill()
        child.communicate()


#: Hands sockets to `mxrt serve` as systemd does, and tells where they are.
ACTIVATE = """
import os, socket, sys
names = sys.argv[1].split(":")
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
ports = ",".join(str(s.getsockname()[1]) for s in sockets)
spare = [os.dup2(s.detach(), 50 + i) for i, s in enumerate(sockets)]
for i, fd in enumerate(spare):
    os.dup2(fd, 3 + i, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=sys.argv[1], LISTEN_PID=str(os.getpid()))
print(ports, flush=True)
os.execv(sys.executable, [sys.executable, "-m", "mxrt", "serve", *sys.argv[2:]])
"""


def test_sockets_of_systemd_are_taken_over(mx, good) -> None:
    with started(ACTIVATE, "http:grpc", f"digits_cnn={DIGITS}") as (child, line):
        http_port, grpc_port = line.strip().split(",")
        running: Any = type("Running", (), {"url": f"http://127.0.0.1:{http_port}", "grpc": f"127.0.0.1:{grpc_port}"})
        # They listen before there is a server.
        good(running)
        with channel(running) as own:
            assert ask(own, "ServerReady").ready
        assert f"at http://127.0.0.1:{http_port};" in child.stdout.readline()


def test_others_are_warned_of_and_options_are_checked(tmp_path) -> None:
    digits = str(DIGITS)

    def tls(certificate: str, key: str) -> tuple[str, ...]:
        files = ("--tls-certificate", str(KEYS / certificate), "--tls-key", str(KEYS / key))
        return (*files, "--port", "0")

    cases = {
        (digits, "--tls-certificate", str(KEYS / "first.pem")): "TLS needs both tls_certificate",
        (digits, "--tls-certificate", "/none", "--tls-key", "/none", "--port", "0"): "'/none': there is no such file",
        (
            digits,
            "--tls-certificate",
            str(KEYS / "first.pem"),
            "--tls-key",
            str(KEYS / "second.key"),
            "--port",
            "0",
        ): "not that of",
        (
            digits,
            "--tls-certificate",
            str(KEYS / "first.key"),
            "--tls-key",
            str(KEYS / "first.key"),
            "--port",
            "0",
        ): "no certificate",
        (digits, "--tokens", "/none", "--port", "0"): "'/none': there is no such file",
        (digits, "--grpc-port", "x"): "--grpc-port is x",
        (digits, "--port", "off", "--grpc-port", "off"): "neither a port nor a socket",
        (digits, "--port", "18080", "--grpc-port", "18080"): "--port and --grpc-port are both 18080",
        (digits, "--port", "18080", "--admin-port", "18081"): "--grpc-port and --admin-port are both 18081",
        (digits, "--unix", str(tmp_path / "none/socket"), "--port", "off"): "cannot listen on",
        (digits, "--unix", str(KEYS / "first.pem"), "--port", "off"): "it is no socket; name another path",
        (digits, "--host", "999.1.1.1", "--port", "0"): "cannot listen on",
    }
    for arguments, words in cases.items():
        result = mxrt("serve", *arguments)
        usage = ("--grpc-port", "needs both", "no such file", "neither a port")
        status = 2 if any(word in words for word in usage) else 1  # that of a file's content or an address
        assert (result.returncode, result.stdout) == (status, ""), (arguments, result)
        assert words in result.stderr and result.stderr.count("\n") == 1, (arguments, result.stderr)
        assert "[MX-OPERATOR]" not in result.stderr, "no operator was called"
    code = "import sys; from mxrt.__main__ import main; sys.exit(main())"
    for options, warned in (((), True), (("--tokens", str(tmp_path / "tokens")), False)):
        (tmp_path / "tokens").write_text(TOKEN)
        with started(code, "serve", digits, "--host", "0.0.0.0", "--port", "0", *options) as (child, _):
            child.terminate()
            assert ("nothing checks who asks" in child.stderr.read()) == warned


def test_accepting_pauses_while_there_are_no_descriptors(good) -> None:
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from mxrt.__main__ import main
sys.exit(main())
"""
    with started(code, "serve", f"digits_cnn={DIGITS}", "--shape=-1,1,8,8", "--port", "0") as (child, line):
        running: Any = type("Running", (), {"url": line.split(" at ")[1].split(";")[0]})
        with contextlib.closing(connect(running)) as early:
            assert exchange(early, "/v2/health/live")[0].status == 200
            with contextlib.ExitStack() as many:
                for _ in range(100):
                    many.enter_context(raw(running))
                said = child.stderr.readline()
                assert "new connections wait (" in said and "open ones are served" in said, said
                # What is there goes on.
                body = digit().encode()
                assert exchange(early, "/v2/models/digits_cnn/infer", body)[0].status == 200
            good(running)


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of a signal."""
    with open(f"/proc/{pid}/status") as status:
        mask = next(line for line in status if line.startswith("SigCgt")).split()[1]
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_server_without_free_descriptors_runs_and_ends() -> None:
    """Connections may take the last ones before it waits for signals."""
    code = """
import os, sys
from mxrt.serve import Server
server = Server({"digits_cnn": sys.argv[1]}, port=0).start()
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    print("none left", flush=True)
sys.exit(server.run())
"""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n" + code
    with started(limited, str(DIGITS)) as (child, line):
        assert line == "none left\n"
        wait_until(lambda: child.poll() is not None or catches(child.pid, signal.SIGTERM))
        assert child.poll() is None, child.stderr.read()
        child.terminate()
        assert child.wait(120) == 0


def test_a_reload_that_is_asked_for_before_it_waits_for_signals_comes_then() -> None:
    code = """
import os, signal, sys
from mxrt.serve import Model, Server
server = Server({"digits_cnn": Model(sys.argv[1], shapes={"data": [-1, 1, 8, 8]})}, port=0)
server._hear_reloads()
server.start()
os.kill(os.getpid(), signal.SIGHUP)
print("asked", flush=True)
sys.exit(server.run())
"""
    with started(code, str(DIGITS)) as (child, line):
        assert line == "asked\n"
        assert "loaded again" in child.stderr.readline()
        child.terminate()
        assert child.wait(120) == 0


def test_a_pipe_of_requests_over_a_unix_socket_is_answered_in_order(mx, tmp_path) -> None:
    path = str(tmp_path / "http")
    with mx.serve.Server({"digits_cnn": DIGITS}, port=None, unix=path), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        bodies = [digit()[:-1] + f', "id": "{number}"}}' for number in range(3)]
        for body in bodies[:-1]:
            connection.sendall(head(len(body)) + body.encode())
        connection.sendall(head(len(bodies[-1]), "Connection: close") + bodies[-1].encode())
        said = read_all(connection).decode()
    assert [said.index(f'"id":"{number}"') for number in range(3)] == sorted(
        said.index(f'"id":"{number}"') for number in range(3)
    )
    assert os.environ.get("LISTEN_FDS") is None
