"""The peer of KServe's Python server: a model of its `Model` class around `net(x)`.

BENCH_MODEL=PREFIX python benches/serve/kserve_model.py --http_port 8080
"""

from __future__ import annotations

import os
from typing import Any

import kserve
from kserve import InferOutput, InferRequest, InferResponse

import mxrt as mx


class Digits(kserve.Model):
    """digits_cnn."""

    def __init__(self) -> None:
        super().__init__("digits_cnn")
        prefix = os.environ["BENCH_MODEL"]
        self.net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
        self.ready = True

    async def predict(self, payload: InferRequest, headers: Any = None, response_headers: Any = None) -> InferResponse:
        """One request."""
        made = self.net(mx.nd.array(payload.inputs[0].as_numpy()))
        await made
        found = InferOutput("output", list(made.shape), "FP32")
        found.set_data_from_numpy(made.asnumpy(), binary_data=True)
        return InferResponse(payload.id or "0", self.name, [found])


if __name__ == "__main__":
    kserve.ModelServer().start([Digits()])
