"""How long another client of `mxrt serve` waits while the scenarios of
tests/serve/test_serve_accounting.py hold the server (`make soak-serve-hostile`).

Prints a table, and ends with status 1 where the 99th percentile of a scenario is beyond the bound.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "serve"))

from serving import connect, digit, exchange
from serving_hostile import Served, ask, at_rest, clients
from test_serve_accounting import SCENARIOS


def waited(server: object, count: int) -> list[float]:
    """Milliseconds of requests, one after the other."""
    times, body = [], digit()
    with contextlib.closing(connect(server)) as connection:
        for _ in range(count):
            began = time.perf_counter()
            response, _ = exchange(connection, "/v2/models/digits_cnn/infer", body)
            assert response.status == 200
            times.append(1000 * (time.perf_counter() - began))
    return sorted(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000, help="of the other client, in each scenario")
    parser.add_argument("--bound", type=float, default=50, help="milliseconds of the 99th percentile")
    args = parser.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Served(Path(folder))) as served:
        for phase, scenario in SCENARIOS.items():
            for transport in scenario.transports:
                server = served.secret if transport == "TLS" else served
                with clients(served, transport, 1) as (client,):
                    ask(client, "same", 1000)
                    client.stream.recv(1)
                before = served.memory()
                with scenario.hold(served, server, transport):
                    times = waited(server, args.requests)
                at_rest(served, server, before)
                half, last = times[len(times) // 2], times[len(times) * 99 // 100]
                slow += last > args.bound
                print(f"{phase:10} {transport:8} p50 {half:7.2f} ms  p99 {last:7.2f} ms", flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
