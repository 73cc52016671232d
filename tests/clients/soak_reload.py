"""A model of `mxrt serve` that is replaced every second under 64 callers
(`make soak-serve-reload SECONDS=`).

No request may fail, every answer is of one version as a whole, and the memory of versions that were
replaced comes back.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import numpy as np

import mxrt
from serving import answer, connect, exchange, golden, request
from support import DIGITS

CALLERS = 64
#: Versions are one of these, by their number.
SCALES = (1.0, 0.5)
#: Bytes that the process may grow by in a second, and beside that: arrays of callers, and what
#: allocators keep.
PER_SECOND, ALLOWED = 20_000, 40 << 20


def place(folder: Path, scale: float) -> None:
    """A version of digits_cnn in its folder, in one step."""
    made = folder.with_name(f".{folder.name}")
    made.mkdir(parents=True)
    shutil.copy(DIGITS / "digits_cnn-symbol.json", made)
    params = mxrt.nd.load(str(DIGITS / "digits_cnn-0000.params"))
    mxrt.nd.save(str(made / "digits_cnn-0000.params"), {name: value * scale for name, value in params.items()})
    (made / "mxrt.toml").write_text("shapes = { data = [-1, 1, 8, 8] }\n")
    made.rename(folder)


def resident() -> int:
    """Bytes of this process in memory."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    seconds = parser.parse_args().seconds
    root = Path(tempfile.mkdtemp())
    given = golden("digits_cnn", 3)
    wanted: dict[int, bytes] = {}
    for version, scale in enumerate(SCALES):
        place(root / f"models/{version}", scale)
        symbol, params = (str(root / f"models/{version}/digits_cnn{end}") for end in ("-symbol.json", "-0000.params"))
        net = mxrt.gluon.SymbolBlock.imports(symbol, ["data"], params)
        wanted[version] = net(mxrt.nd.array(given[0])).asnumpy().tobytes()
    body, headers = request(["data"], given, parameters={"binary_data_output": True})
    answered, failures = [0] * CALLERS, []
    place(root / "repository/digits/2", SCALES[0])

    with mxrt.serve.Server(repository=root / "repository", port=0, log_requests=False) as server:
        end = time.monotonic() + seconds

        def caller(number: int) -> None:
            try:
                with contextlib.closing(connect(server)) as connection:
                    while time.monotonic() < end:
                        head, found = answer(*exchange(connection, "/v2/models/digits/infer", body, headers))
                        assert found[0].tobytes() == wanted[int(head["model_version"]) % len(SCALES)], head
                        answered[number] += 1
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=caller, args=(number,)) for number in range(CALLERS)]
        for thread in threads:
            thread.start()
        version, memory, began = 2, [], time.monotonic()
        while time.monotonic() < end - 1:
            time.sleep(1)
            version += 1
            place(root / f"repository/digits/{version}", SCALES[version % len(SCALES)])
            server.load("digits")
            shutil.rmtree(root / f"repository/digits/{version - 1}")
            memory.append((time.monotonic() - began, resident()))
        for thread in threads:
            thread.join()
        last = server.models[0]["versions"]
    shutil.rmtree(root)
    half = memory[len(memory) // 2 :]
    slope = float(np.polyfit(*zip(*half, strict=True), 1)[0])
    grown = half[-1][1] - memory[0][1]
    facts: dict[str, Any] = {
        "answered": sum(answered),
        "versions": version - 1,
        "last": last,
        "bytes per second": round(slope),
        "grown": grown,
        "failures": [repr(failure) for failure in failures],
    }
    print(json.dumps(facts))
    flat = slope < PER_SECOND or grown < ALLOWED
    return 0 if not failures and all(answered) and last == [str(version)] and flat else 1


if __name__ == "__main__":
    sys.exit(main())
