"""Records calls of the operators of MXNet's numpy interface in numpy.json and numpy.npz.

    python record_numpy.py

It runs with MXNet 1.9.1 and NumPy 1.23. Every operator is recorded in a process of its own, because
MXNet ends the process on some calls. A call that MXNet refuses is recorded as an error, unless the
process ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as onp
from numpy_calls import Case, Maker, elementwise, reductions, shapes
from numpy_more_calls import creation, joining, products, random, selection

FOLDER = Path(__file__).resolve().parent

FAMILIES = [elementwise, reductions, shapes, joining, creation, selection, products, random]


def encode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def call(name: str, arrays: list[onp.ndarray], attrs: dict[str, Any]) -> list[onp.ndarray]:
    import mxnet as mx
    from mxnet import np, npx

    npx.set_np()
    spaces = {"_npi_": mx.nd.numpy._internal, "_np_": mx.nd.numpy, "_npx_": mx.nd.numpy_extension}
    prefix = next(prefix for prefix in spaces if name.startswith(prefix))
    function = getattr(spaces[prefix], name[len(prefix) :], None) or getattr(
        mx.nd.numpy_extension._internal, name[len(prefix) :]
    )
    required = ("low", "high", "loc", "scale", "shape", "prob", "logit", "a")
    given = {key: value for key, value in attrs.items() if value is not None or key in required or key == "axis"}
    inputs = [np.array(array, dtype=array.dtype) for array in arrays]
    result = function(*inputs, **given)
    results = result if isinstance(result, (list, tuple)) else [result]
    return [one.asnumpy() for one in results]


def record(name: str, cases: list[Case]) -> list[dict[str, Any]]:
    """Calls in a child, one after the other; those before the end of the process are kept."""
    rows: list[dict[str, Any]] = []
    start = 0
    while start < len(cases):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                for number, (arrays, attrs) in enumerate(cases[start:], start):
                    try:
                        outcome: Any = ("values", call(name, arrays, attrs))
                    except Exception as error:
                        outcome = ("error", str(error).splitlines()[-1][:120])
                    pickle.dump((number, outcome), pipe)
                    pipe.flush()
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            while True:
                try:
                    number, outcome = pickle.load(pipe)
                except EOFError:
                    break
                rows.append({"number": number, "outcome": outcome})
                start = number + 1
        _, status = os.waitpid(child, 0)
        if status != 0:
            start += 1  # the call that ended the process
    return rows


def main() -> None:
    os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import mxnet  # noqa: F401  # once, for all children

    calls: dict[str, list[Case]] = {}
    family_of: dict[str, str] = {}
    for seed, family in enumerate(FAMILIES):
        for name, case in family(Maker(seed)):
            calls.setdefault(name, []).append(case)
            family_of[name] = family.__name__
    arrays: dict[str, onp.ndarray] = {}

    def keep(array: onp.ndarray) -> str:
        text = repr((array.dtype.str, array.shape)).encode() + onp.ascontiguousarray(array).tobytes()
        key = hashlib.sha1(text).hexdigest()[:10]
        arrays[key] = array
        return key

    lines = []
    for name, cases in calls.items():
        rows = record(name, cases)
        print(name, len(rows), "of", len(cases), file=sys.stderr)
        for row in rows:
            given, attrs = cases[row["number"]]
            case = {
                "op": name,
                "inputs": [keep(array) for array in given],
                "attrs": {k: encode(v) for k, v in attrs.items()},
            }
            kind, outcome = row["outcome"]
            if kind == "error":
                case["error"] = outcome
            elif family_of[name] == "random":
                stats = [[float(one.mean()), float(one.std())] if one.size > 100 else None for one in outcome]
                case["outputs"] = [
                    [one.dtype.name, list(one.shape), stat] for one, stat in zip(outcome, stats, strict=True)
                ]
                case["random"] = True
            else:
                case["outputs"] = [keep(one) for one in outcome]
            lines.append(json.dumps(case))
    (FOLDER / "numpy.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    onp.savez_compressed(FOLDER / "numpy.npz", **arrays)
    print(len(lines), "cases", len(arrays), "arrays", file=sys.stderr)


if __name__ == "__main__":
    main()
