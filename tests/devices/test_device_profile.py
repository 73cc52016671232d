"""The profiler's records of devices.

The devices of this process have threads and do their work at once. Children are given other kinds
of engine, devices whose work waits until a thread asks for a result (``MXRT_SIM_MODE=scheduled``),
or whose order a seed decides.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support import ASYNC, DEVICE_KIND, GPUS, last_json, run_python


@pytest.mark.parametrize("kind", ASYNC)
def test_what_nobody_waited_for_is_in_the_profile_when_it_is_complete(kind: str, tmp_path: Path) -> None:
    done = run_python(
        """
        import json, sys, mxrt as mx
        mx.profiler.set_config(filename=sys.argv[1])
        x = mx.nd.ones((8, 8), ctx=mx.sim(0))
        x.wait_to_read()

        def spans():
            with open(sys.argv[1]) as file:
                return [e["name"] for e in json.load(file)["traceEvents"] if e.get("cat") == "device"].count("dot")

        mx.profiler.set_state("run")
        made = [mx.nd.dot(x, x) for _ in range(3)]
        mx.profiler.set_state("stop")
        mx.profiler.dump(finished=False)  # these devices do nothing before a thread waits
        found = [spans()]
        mx.profiler.dump()
        found.append(spans())
        mx.profiler.dump()
        print([*found, spans()])
        """,
        tmp_path / "trace.json",
        env={"MXNET_ENGINE_TYPE": kind, "MXRT_SIM_MODE": "scheduled"},
    )
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("[0, 3, 0]", 0, "")


def test_the_profile_shows_what_devices_did_and_when(mx, tmp_path: Path) -> None:
    done = run_python(
        """
        import json, sys, mxrt as mx
        mx.profiler.set_config(filename=sys.argv[1])
        x = mx.nd.ones((64, 64), ctx=mx.sim(0))
        x.wait_to_read()
        mx.profiler.set_state("run")
        made = [mx.nd.dot(x, x) for _ in range(3)]
        for y in made:
            y.wait_to_read()
        z = y.as_in_context(mx.sim(1)).asnumpy()
        mx.nd.waitall()
        text, times = mx.profiler.dumps(), json.loads(mx.profiler.dumps(format="json"))["Time"]
        mx.profiler.dump()
        with open(sys.argv[1]) as file:
            events = json.load(file)["traceEvents"]
        lanes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        spans = [e for e in events if e.get("cat") == "device"]
        print(json.dumps([text, times["device"], sorted(set(lanes.values())), spans, lanes]))
        """,
        tmp_path / "trace.json",
        env={"MXNET_ENGINE_TYPE": ASYNC[0]},
    )
    text, device, names, spans, lanes = last_json(done)
    assert "device\n====" in text and f"dot @{DEVICE_KIND}(0)" in text
    dot = device[f"dot @{DEVICE_KIND}(0)"]
    assert dot["Count"] == 3 and 0 < dot["Min"] <= dot["Avg"]
    assert {f"{DEVICE_KIND}(0)", f"{DEVICE_KIND}({GPUS - 1})"} <= set(names)
    dots = [span for span in spans if span["name"] == "dot"]
    assert len(dots) == 3 and all(lanes[str(span["pid"])] == f"{DEVICE_KIND}(0)" and span["dur"] > 0 for span in dots)
    assert all(span["args"]["submitted_us"] <= span["ts"] and not span["args"]["failed"] for span in dots)
