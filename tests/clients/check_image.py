"""Containers of the image that `deploy/Dockerfile` makes (`make check-image`)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
import mxrt
from serving import asked, called, golden, same
from support import MODELS

CONTAINERS, IMAGE = os.environ["MXRT_CONTAINERS"], os.environ["MXRT_IMAGE"]
MODEL = "digits_cnn"


def containers(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([CONTAINERS, *arguments], capture_output=True, text=True, timeout=120)
    assert not check or result.returncode == 0, f"{arguments}: {result.stderr}"
    return result


def run(folder: Path, *options: str) -> list[str]:
    """Arguments of a container as Kubernetes starts it by the manifests: it can write nothing."""
    mounted = f"{folder}:/mnt/models:ro"
    return ["run", "--read-only", "--cap-drop", "ALL", "--network", "host", "--volume", mounted, *options, IMAGE]


@dataclass
class Server:
    """A container, and where its server listens."""

    name: str
    url: str


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def server() -> Iterator[Server]:
    port, name = free_port(), f"mxrt-check-{os.getpid()}"
    ports = ["--env", f"MXRT_SERVE_PORT={port}", "--env", "MXRT_SERVE_GRPC_PORT=off"]
    containers(*run(MODELS / MODEL, "--detach", "--name", name, *ports), f"{MODEL}=/mnt/models")
    running = Server(name, f"http://127.0.0.1:{port}")
    try:
        wait_until_ready(running)
        yield running
    finally:
        containers("rm", "--force", name)


def wait_until_ready(server: Server) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{server.url}/v2/health/ready", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(containers("logs", server.name).stderr)


def inside(server: Server, *command: str) -> subprocess.CompletedProcess[str]:
    return containers("exec", server.name, *command, check=False)


def inspected(name: str, what: str) -> dict:
    return json.loads(containers("inspect", name, "--format", f"{{{{json {what}}}}}").stdout)


def test_it_answers_as_the_package_does_here(server: Server) -> None:
    assert same(asked(server, MODEL, golden(MODEL, 3)), called(mxrt, MODEL, 3))


def test_it_is_nobody_and_writes_nothing(server: Server) -> None:
    assert inside(server, "id", "-u").stdout.strip() == "65532"
    for place in ("/x", "/mxrt/x", "/mnt/models/x"):
        refused = inside(server, "touch", place)
        assert refused.returncode != 0, place
        assert "Read-only file system" in refused.stderr
    assert not (MODELS / MODEL / "x").exists()


def test_its_health_check_sees_whether_the_server_lives(server: Server) -> None:
    kind, *command = inspected(server.name, ".Config.Healthcheck")["Test"]
    assert kind == "CMD"
    assert inside(server, *command).returncode == 0
    elsewhere = containers("exec", "--env", f"MXRT_SERVE_PORT={free_port()}", server.name, *command, check=False)
    assert elsewhere.returncode != 0


def test_it_ends_well_when_it_is_stopped(server: Server) -> None:
    containers("stop", "--time", "30", server.name)
    assert inspected(server.name, ".State.ExitCode") == 0


def test_a_folder_without_a_model_is_an_error_that_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ended = containers(*run(tmp_path, "--rm"), check=False)
    assert ended.returncode != 0
    assert "/mnt/models" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_weighs_no_more_than_120_megabytes_as_registries_hold_it() -> None:
    packer, size = zlib.compressobj(6), 0
    with subprocess.Popen([CONTAINERS, "save", IMAGE], stdout=subprocess.PIPE) as saving:
        assert saving.stdout
        while part := saving.stdout.read(1 << 20):
            size += len(packer.compress(part))
    assert saving.returncode == 0
    size += len(packer.flush())
    print(f"the image has {size / 1e6:.0f} MB, compressed")
    assert 20e6 < size <= 120e6
