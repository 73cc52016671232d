"""Writes monitors.json: what MXNet 1.9.1's monitors call the inputs of operators.

python tests/recorded/record_monitors.py

Each operator of the recorded cases (tests/conformance) runs once, with a Python that has MXNet.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import mxnet as mx
import numpy as np

HERE = Path(__file__).parent
DATA = HERE.parent / "conformance" / "data"


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def names_of(case: dict, arrays: dict) -> tuple[str, list[str]] | None:
    """The operator of a case and the names of its inputs; None for a graph of several operators."""
    function = mx.sym
    for part in case["op"].split("."):
        function = getattr(function, part)
    given = [mx.nd.array(arrays[one["a"]], dtype=arrays[one["a"]].dtype) for one in case["inputs"]]
    symbol = function(*[mx.sym.Variable(f"v{place}") for place in range(len(given))], name="node", **tuples_of(case))
    nodes = [node for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"]
    if len(nodes) != 1:
        return None
    named = {f"v{place}": array for place, array in enumerate(given)}
    executor = symbol.bind(
        mx.cpu(),
        args={name: named[name] for name in symbol.list_arguments()},
        aux_states={name: named[name] for name in symbol.list_auxiliary_states()},
        grad_req="null",
    )
    heard: list[str] = []
    executor.set_monitor_callback(lambda name, _: heard.append(name.decode()), monitor_all=True)
    executor.forward()
    mx.nd.waitall()
    own = [name.removeprefix("node_") for name in heard if name.startswith("node_")]
    return nodes[0]["op"], own[: len(given)]


def tuples_of(case: dict) -> dict:
    return {key: tuples(value) for key, value in case["attrs"].items()}


def main() -> None:
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    found: dict[str, list[str]] = {}
    for path in sorted(DATA.glob("*/cases.json")):
        if path.parent.name in ("quantized", "sparse", "errors"):
            continue
        arrays = np.load(path.parent / "arrays.npz")
        for case in json.loads(path.read_text()):
            if case["kind"] == "op" and case["inputs"] and all(list(one) == ["a"] for one in case["inputs"]):
                # Not every case can be written as a symbol.
                with contextlib.suppress(Exception):
                    names = names_of(case, arrays)
                    if names is not None and len(names[1]) > len(found.get(names[0], [])):
                        found[names[0]] = names[1]
    (HERE / "monitors.json").write_text(json.dumps(dict(sorted(found.items())), indent=0) + "\n")


if __name__ == "__main__":
    main()
