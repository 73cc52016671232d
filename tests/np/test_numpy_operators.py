"""The operators of MXNet's numpy interface, called by name as DJL and exported graphs do, against
results recorded from MXNet 1.9.1 (recorded/record_numpy.py).
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from support import RECORDED

FOLDER = RECORDED
CASES: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _case in json.loads((FOLDER / "numpy.json").read_text()):
    CASES[_case["op"]].append(_case)

RTOL = {"float16": 4e-3, "float32": 2e-4, "float64": 1e-6}
ATOL = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-7}

# Calls that MXNet refuses, in ways that are no rule of the operator, and that have an answer here.
MORE = {
    "_np_diag": "bool",
    "_np_max": "an axis of scalars",
    "_np_min": "an axis of scalars",
    "_np_prod": "whole numbers with dtype",
    "_np_sum": "whole numbers with dtype",
    "_npi_boolean_mask_assign_scalar": "results of their own, which MXNet writes in place only",
    "_npi_boolean_mask_assign_tensor": "results of their own, which MXNet writes in place only",
    "_npi_flip": "axes from the end",
    "_npi_insert_scalar": "numbers as values",
    "_npi_insert_slice": "numbers as values",
    "_npi_insert_tensor": "numbers as values",
    "_npi_mean": "whole numbers with dtype",
    "_npi_percentile": "scalars",
}
# Cases that differ on purpose (docs/differences.md), by operator and element type of the input.
MEANT = {(op, dtype) for op in ("_npi_std", "_npi_var") for dtype in ("int8", "int32", "int64", "uint8")}


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    with np.load(FOLDER / "numpy.npz") as stored:
        return {key: stored[key] for key in stored.files}


def tuples(value: Any) -> Any:
    return tuple(tuples(item) for item in value) if isinstance(value, list) else value


def make(mx: Any, array: np.ndarray) -> Any:
    """An array of that very shape, scalars included."""
    made = mx.nd.array(array, dtype=array.dtype)
    return made if made.shape == array.shape else mx.nd._internal._np_reshape(made, newshape=array.shape)


def call(mx: Any, case: dict[str, Any], arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    inputs = [make(mx, arrays[key]) for key in case["inputs"]]
    attrs = {key: tuples(value) for key, value in case["attrs"].items()}
    made = getattr(mx.nd._internal, case["op"])(*inputs, **attrs)
    return [one.asnumpy() for one in (made if isinstance(made, (list, tuple)) else [made])]


def difference(got: np.ndarray, want: np.ndarray) -> str | None:
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return None if np.array_equal(got, want) else f"{got}, expected {want}"
    name = want.dtype.name
    with np.errstate(all="ignore"):
        close = np.isclose(got.astype("float64"), want.astype("float64"), RTOL[name], ATOL[name], equal_nan=True)
    return None if close.all() else f"{got}, expected {want}"


def judged(mx: Any, case: dict[str, Any], arrays: dict[str, np.ndarray]) -> str | None:
    """Says how our answer to a case differs; None if it does not."""
    try:
        got = call(mx, case, arrays)
    except (mx.base.MXNetError, ValueError, TypeError) as error:
        return None if "error" in case else f"error {error}"
    if "error" in case:
        return None if case["op"] in MORE else f"no error, but MXNet has {case['error']}"
    if len(got) != len(case["outputs"]):
        return f"{len(got)} outputs, expected {len(case['outputs'])}"
    if not case.get("random"):
        found = (difference(one, arrays[key]) for one, key in zip(got, case["outputs"], strict=True))
        return next((wrong for wrong in found if wrong), None)
    for one, (dtype, shape, stats) in zip(got, case["outputs"], strict=True):
        if (one.dtype.name, list(one.shape)) != (dtype, shape):
            return f"{one.dtype}{one.shape}, expected {dtype}{shape}"
        if stats is not None:
            mean, deviation = stats
            room = 0.12 * (deviation + 0.1)
            if abs(one.mean() - mean) > room or abs(one.std() - deviation) > 2 * room:
                return f"mean {one.mean()} and deviation {one.std()}, expected {mean} and {deviation}"
    return None


@pytest.mark.parametrize("op", list(CASES))
def test_an_operator_answers_as_mxnet_recorded(mx: Any, arrays: dict[str, np.ndarray], op: str) -> None:
    wrong = []
    for number, case in enumerate(CASES[op]):
        given = [f"{arrays[key].dtype}{arrays[key].shape}" for key in case["inputs"]]
        if any((op, arrays[key].dtype.name) in MEANT for key in case["inputs"]):
            continue
        message = judged(mx, case, arrays)
        if message is not None:
            wrong.append(f"case {number} {given} {case['attrs']}: {' '.join(message.split())[:300]}")
    assert not wrong, f"{len(wrong)} of {len(CASES[op])} calls of {op} differ:\n" + "\n".join(wrong[:30])


@pytest.mark.parametrize(("op", "function"), [("_npi_std", np.std), ("_npi_var", np.var)])
def test_variances_of_whole_numbers_are_those_of_numpy(mx: Any, op: str, function: Any) -> None:
    """MXNet truncates the deviations."""
    x = np.array([[0, 3, 3, 4], [1, 1, 0, 9]], "int32")
    got = getattr(mx.nd._internal, op)(mx.nd.array(x, dtype="int32"), axis=(1,), dtype="float32").asnumpy()
    np.testing.assert_allclose(got, function(x, axis=1), rtol=1e-6)


def test_the_recorded_set_has_all_element_types_and_scalars(arrays: dict[str, np.ndarray]) -> None:
    """The recorded set must not shrink to what is easy."""
    total = sum(len(cases) for cases in CASES.values())
    assert total >= 2000
    kinds = {arrays[key].dtype.name for cases in CASES.values() for case in cases for key in case["inputs"]}
    assert kinds >= {"float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"}
    scalar = {
        op for op, cases in CASES.items() for case in cases if any(arrays[key].ndim == 0 for key in case["inputs"])
    }
    assert len(scalar) >= 100
