"""The peer of uvicorn: the protocol's binary request around `net(x)`, as one writes it by hand.

python -m uvicorn asgi:app --app-dir benches/serve     (BENCH_MODEL is PREFIX of digits_cnn)
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

import mxrt as mx

prefix = os.environ["BENCH_MODEL"]
net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answers inference with the model's output, in JSON and bytes as the protocol has them."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/ready":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    length = int(dict(scope["headers"])[b"inference-header-content-length"])
    tensor = json.loads(body[:length])["inputs"][0]
    given = np.frombuffer(body, "float32", offset=length).reshape(tensor["shape"])
    made = net(mx.nd.array(given))
    await made
    output = made.asnumpy()
    sizes = {"binary_data_size": output.nbytes}
    named = {"name": "output", "shape": output.shape, "datatype": "FP32", "parameters": sizes}
    head = json.dumps({"model_name": "digits_cnn", "outputs": [named]}).encode()
    headers = [(b"inference-header-content-length", str(len(head)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": head + output.tobytes()})
