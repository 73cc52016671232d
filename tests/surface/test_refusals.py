"""Refusals of what mxrt does not have name what works."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

# Calls that are refused, and what a user should find in the error.
REFUSED = {
    "np.convolve": (lambda mx: mx.np.convolve, r"use numpy\.convolve with x\.asnumpy\(\)"),
    "import_model": (
        lambda mx: mx.contrib.onnx.import_model("a.onnx"),
        "with MXNet 1.9.1: mx.contrib.onnx.import_model",
    ),
    "export_model": (
        lambda mx: mx.onnx.export_model(mx.sym.erfinv(mx.sym.var("x")), {}, [(1, 2)]),
        "MXNet 1.9.1 may write it",
    ),
    "export_model of integers": (
        lambda mx: mx.onnx.export_model(mx.sym.contrib.quantize_v2(mx.sym.var("x")), {}, [(1, 2)]),
        r"computes on 8-bit integers .*\. Write the float32 model",
    ),
    "CudaModule": (lambda mx: mx.rtc.CudaModule(""), "mx.operator.CustomOp"),
    "compute capability": (
        lambda mx: mx.util.get_cuda_compute_capability(mx.gpu()),
        "nvidia-smi --query-gpu=compute_cap",
    ),
    "a gradient": (lambda mx: mx.autograd.grad(mx.nd.ones(1), []), "load the exported files here"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_what_works(mx, name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises((NotImplementedError, AttributeError), match=words) as caught:
        call(mx)
    advice = re.split("; |: |[.] ", str(caught.value), maxsplit=1)[1]
    for named in re.findall(r"\bmx((?:\.\w+)+)", advice):
        thing = mx
        for part in named[1:].split("."):
            thing = getattr(thing, part)


def test_what_refusals_advise_works(mx) -> None:
    assert mx.nd.empty((0, 3)).shape == mx.nd.array(np.zeros((0, 3))).shape == (0, 3)
    found = np.convolve(mx.np.ones(2).asnumpy(), mx.np.ones(3).asnumpy())
    assert mx.np.array(found).tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("_npi_cvimread", r"read images before the network, by mx\.image"),
        ("_sg_onednn_conv", "save the symbol as it was before optimize_for"),
    ],
)
def test_graphs_with_operators_of_an_absent_family_say_what_loads(mx, operator: str, words: str) -> None:
    nodes = [{"op": "null", "name": "x", "inputs": []}, {"op": operator, "name": "n", "inputs": [[0, 0, 0]]}]
    with pytest.raises(NotImplementedError, match=words):
        mx.sym.load_json(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}))
