"""Servers that are measured: `mxrt serve`, and its peers, each in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


def free_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


@dataclass
class Running:
    """A server that answers at its ports."""

    process: subprocess.Popen[str]
    port: int
    grpc: int

    def status(self, name: str) -> int:
        """Bytes of a row of its process's status."""
        rows = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * int(next(row for row in rows if row.startswith(name)).split()[1])

    def seconds(self) -> float:
        """Seconds of a core that its process has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answers(port: int, path: str) -> bool:
    """Whether a path is answered with 200 now."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


@contextlib.contextmanager
def run(command: list[str], port: int, grpc: int, ready: str, **variables: str) -> Iterator[Running]:
    """The process of a command, from the moment in which it is ready."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True, env=os.environ | variables)
        try:
            end = time.monotonic() + 60
            while not answers(port, ready):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    sys.exit(f"{' '.join(command)}: {log.read()[-2000:]}")
                time.sleep(0.002)
            yield Running(process, port, grpc)
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def mxrt(prefix: Path, shape: str | None, *options: str) -> contextlib.AbstractContextManager[Running]:
    """`mxrt serve` with one model."""
    port, grpc = free_port(), free_port()
    command = [sys.executable, "-m", "mxrt", "serve", f"{prefix.name}={prefix}"]
    command += [] if shape is None else [f"--shape=data={shape}"]
    command += ["--port", str(port), "--grpc-port", str(grpc), *options]
    return run(command, port, grpc, "/v2/health/ready")


def uvicorn(python: str, prefix: Path) -> contextlib.AbstractContextManager[Running]:
    """Runs uvicorn around `net(x)`."""
    port = free_port()
    command = [python, "-m", "uvicorn", "asgi:app", "--app-dir", str(HERE), "--port", str(port)]
    return run([*command, "--log-level", "critical"], port, 0, "/ready", BENCH_MODEL=str(prefix))


def kserve(python: str, prefix: Path) -> contextlib.AbstractContextManager[Running]:
    """Runs KServe's Python server around `net(x)`."""
    port = free_port()
    command = [python, str(HERE / "kserve_model.py"), "--http_port", str(port), "--enable_grpc", "false"]
    command += ["--enable_latency_logging", "false"]
    return run(command, port, 0, "/v2/health/ready", BENCH_MODEL=str(prefix))
