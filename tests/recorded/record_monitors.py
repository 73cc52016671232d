"""Writes monitors.json: what MXNet 1.9.1's monitors and hooks call the inputs and outputs of
operators.

python tests/recorded/record_monitors.py

Each operator of the recorded cases (tests/conformance) runs once, and each model of 8-bit integers
(tests/models), with a Python that has MXNet.
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
MODELS = HERE.parent / "models"


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def heard(symbol, arrays: dict) -> dict[str, list[str]]:
    """The names that a monitor and a hook hear when a graph is computed."""
    executor = symbol.bind(
        mx.cpu(),
        args={name: arrays[name] for name in symbol.list_arguments()},
        aux_states={name: arrays[name] for name in symbol.list_auxiliary_states()},
        grad_req="null",
    )
    names: dict[str, list[str]] = {"monitor": [], "hook": []}
    executor.set_monitor_callback(lambda name, _: names["monitor"].append(name.decode()), monitor_all=True)
    executor.forward()
    mx.nd.waitall()
    op = mx.nd.CachedOp(symbol, ())
    op._register_op_hook(lambda name, *_: names["hook"].append(name.decode()), monitor_all=True)
    op(*[arrays[name] for name in symbol.list_inputs()])
    mx.nd.waitall()
    return names


def heard_in(case: dict, arrays: dict) -> tuple[str, dict[str, list[str]]] | None:
    """The operator of a case and what is heard; None for a graph of several operators."""
    function = mx.sym
    for part in case["op"].split("."):
        function = getattr(function, part)
    given = [mx.nd.array(arrays[one["a"]], dtype=arrays[one["a"]].dtype) for one in case["inputs"]]
    attrs = {key: tuples(value) for key, value in case["attrs"].items()}
    symbol = function(*[mx.sym.Variable(f"v{place}") for place in range(len(given))], name="node", **attrs)
    nodes = [node for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"]
    if len(nodes) != 1:
        return None
    return nodes[0]["op"], heard(symbol, {f"v{place}": array for place, array in enumerate(given)})


def of_operators() -> dict[str, dict]:
    found: dict[str, dict] = {}
    for path in sorted(DATA.glob("*/cases.json")):
        if path.parent.name in ("sparse", "errors"):
            continue
        arrays = np.load(path.parent / "arrays.npz")
        for place, case in enumerate(json.loads(path.read_text())):
            if case["kind"] == "op" and case["inputs"] and all(list(one) == ["a"] for one in case["inputs"]):
                # Not every case can be written as a symbol.
                with contextlib.suppress(Exception):
                    operator, names = heard_in(case, arrays) or ("", {"hook": []})
                    if operator and len(names["hook"]) > len(found.get(operator, {"hook": []})["hook"]):
                        found[operator] = {"group": path.parent.name, "case": place, **names}
    return dict(sorted(found.items()))


def of_models() -> dict[str, dict]:
    found = {}
    for name in ("cnn_int8_fused", "mlp_int8"):
        symbol, args, states = mx.model.load_checkpoint(str(MODELS / name / name), 0)
        golden = np.load(MODELS / name / "golden.npz")
        arrays = {**args, **states, "data": mx.nd.array(golden["b3.in.data"])}
        arrays |= {name: mx.nd.zeros((3,)) for name in symbol.list_inputs() if name not in arrays}
        found[name] = heard(symbol, arrays)
    return found


def main() -> None:
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    found = {"operators": of_operators(), "models": of_models()}
    groups = []
    for group, rows in found.items():
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        groups.append(f"{json.dumps(group)}: {{\n{lines}\n}}")
    (HERE / "monitors.json").write_text("{\n" + ",\n".join(groups) + "\n}\n")


if __name__ == "__main__":
    main()
