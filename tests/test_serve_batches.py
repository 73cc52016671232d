"""`mxrt serve`: requests that wait while a model computes are joined into one call."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

from serving import answer, asked, called, connect, exchange, gauge, golden, meta, request, same
from support import MODELS, in_threads

LABELS = 'model="{}",version="1"'


def served(mx, name: str, batch: str | int):
    described = meta(name)["inputs"]
    shapes = {tensor["name"]: [-1, *tensor["shape"][1:]] for tensor in described}
    return mx.serve.Model(MODELS / name, shapes=shapes, batch=batch)


def said(server, name: str) -> str:
    found = next(model for model in server.models if model["name"] == name)
    return found["parameters"]["batch"]


def test_members_of_a_batch_get_their_own_rows(mx) -> None:
    wanted = {batch: called(mx, "module_mlp", batch) for batch in (1, 3)}
    with mx.serve.Server({"module_mlp": served(mx, "module_mlp", 8)}, port=0) as server:
        assert said(server, "module_mlp").startswith("at most 8 rows")
        for batch in wanted:
            assert same(asked(server, "module_mlp", golden("module_mlp", batch)), wanted[batch]), "alone: exact"

        def ask(number: int) -> None:
            names = [tensor["name"] for tensor in meta("module_mlp")["inputs"]]
            with contextlib.closing(connect(server)) as connection:
                for turn in range(60):
                    batch = (1, 3)[(number + turn) % 2]
                    arrays = golden("module_mlp", batch)
                    body, headers = request(names, arrays, parameters={"binary_data_output": True}, id=str(turn))
                    path = "/v2/models/module_mlp/infer"
                    head, found = answer(*exchange(connection, path, body, headers))
                    assert head["id"] == str(turn)
                    for one, other in zip(found, wanted[batch], strict=True):
                        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

        in_threads(32, ask)
        labels = LABELS.format("module_mlp")
        batches = gauge(server, f"mxrt_batches_total{{{labels}}}")
        assert batches > 0
        assert gauge(server, f"mxrt_batched_rows_total{{{labels}}}") >= 2 * batches
        assert gauge(server, f'mxrt_requests_total{{{labels},outcome="success"}}') == 32 * 60 + 2
        assert gauge(server, "mxrt_queue_requests") == 0


def test_the_metadata_says_why_nothing_is_joined(mx) -> None:
    models = {
        "switched_off": served(mx, "module_mlp", "off"),
        "fixed": mx.serve.Model(MODELS / "module_mlp", shapes={"data": [2, 64]}, batch=8),
        "costly_rows": served(mx, "digits_cnn", "auto"),
    }
    with mx.serve.Server(models, port=0) as server:
        assert said(server, "switched_off") == "off: it is switched off"
        assert said(server, "fixed") == "off: the shape of a row is not known"
        assert said(server, "costly_rows").startswith(("off: rows cost more", "at most 16 rows"))
        with contextlib.closing(connect(server)) as connection:
            about = json.loads(exchange(connection, "/v2/models/switched_off")[1])
        assert about["parameters"]["batch"] == "off: it is switched off"


@pytest.mark.parametrize("batch", [0, 1, -2, "on", True, 2.5])
def test_what_is_no_choice_of_batches_is_an_error(mx, batch) -> None:
    with pytest.raises(mx.base.MXNetError, match="batch is"):
        mx.serve.Server({"mlp": served(mx, "module_mlp", batch)}, port=0)
