"""`mxrt serve`: bounds of each model, the order of requests, early refusal, lines and metrics."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serving import Gate, connect, digit, exchange, gauge, golden, model, post, request, wait_until
from support import DIGITS, ROOT
from test_serve_ends import command, gate_body


@pytest.fixture
def gate(mx, tmp_path) -> Iterator[Gate]:
    made = Gate(mx, tmp_path)
    yield made
    made.pass_through(1000)


def waiting(server, count: int) -> None:
    wait_until(lambda: gauge(server, "mxrt_waiting_calls") == count)


def test_a_full_queue_of_a_model_refuses_its_requests_alone(mx, gate) -> None:
    gate.model.settings["model_queue_requests"] = 1
    models = {"gate": gate.model, "digits_cnn": mx.serve.Model(DIGITS, model_queue_bytes=100)}
    with mx.serve.Server(models, port=0) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, server, gate_body(1), None, "gate")
        wait_until(lambda: gauge(server, "mxrt_queue_requests") == 1)
        status, text = post(server, gate_body(2), model="gate")
        assert (status, "the queue of 'gate' is full (1 requests)" in text) == (429, True), text
        with contextlib.closing(connect(server)) as connection:
            assert exchange(connection, "/v2/health/ready")[0].status == 200
        status, text = post(server, digit())
        assert (status, "the queue of 'digits_cnn' is full (100 bytes)" in text) == (429, True), text
        gate.pass_through(1)
        assert first.result()[0] == 200
        assert gauge(server, "mxrt_queue_bytes") == 0
    assert gate.entered == [1.0]


def test_calls_of_a_model_are_bounded_and_others_go_on(mx, gate) -> None:
    gate.model.settings["calls"] = 1
    with mx.serve.Server({"gate": gate.model, "digits_cnn": DIGITS}, port=0) as server, ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(post, server, gate_body(value), None, "gate") for value in (1, 2, 3)]
        waiting(server, 2)
        wait_until(lambda: len(gate.entered) == 1)
        assert post(server, digit())[0] == 200
        assert len(gate.entered) == 1
        gate.pass_through(3)
        assert all(future.result()[0] == 200 for future in asked)


def order_of(mx, gate, ageing: float, pause: float) -> list[float]:
    """The order in which an old request of low priority and two later ones of high priority
    compute.
    """
    gate.model.settings["calls"] = 1
    with mx.serve.Server({"gate": gate.model}, port=0, ageing=ageing) as server, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(post, server, gate_body(0), None, "gate")]
        wait_until(lambda: gate.entered == [0.0])
        asked.append(pool.submit(post, server, gate_body(9, priority=9), None, "gate"))
        waiting(server, 1)
        time.sleep(pause)
        asked.append(pool.submit(post, server, gate_body(1, priority=1), None, "gate"))
        waiting(server, 2)
        asked.append(pool.submit(post, server, gate_body(2, priority=1), None, "gate"))
        waiting(server, 3)
        gate.pass_through(4)
        assert all(future.result()[0] == 200 for future in asked)
    return gate.entered


def test_the_highest_priority_goes_first(mx, gate) -> None:
    assert order_of(mx, gate, 1000, 0) == [0.0, 1.0, 2.0, 9.0]


def test_low_priority_has_its_turn_after_a_while(mx, gate) -> None:
    assert order_of(mx, gate, 0.01, 0.3) == [0.0, 9.0, 1.0, 2.0]


@pytest.mark.parametrize("admission", [True, False])
def test_what_would_be_late_is_refused_at_once(mx, gate, admission: bool) -> None:
    gate.model.settings["calls"] = 1
    with mx.serve.Server({"gate": gate.model}, port=0, admission=admission) as server, ThreadPoolExecutor(4) as pool:
        first = pool.submit(post, server, gate_body(1), None, "gate")
        wait_until(lambda: gate.entered == [1.0])
        time.sleep(1)
        gate.pass_through(1)
        assert first.result()[0] == 200
        asked = [pool.submit(post, server, gate_body(value), None, "gate") for value in (2, 3, 4)]
        waiting(server, 2)
        # Without admission it waits until it is late.
        status, text = post(server, gate_body(5, timeout=2_000_000), model="gate")
        assert (status, "by what waits" in text) == (504, admission), text
        assert gauge(server, 'mxrt_requests_total{model="gate",version="1",outcome="late"}') == 1
        gate.pass_through(3)
        assert all(future.result()[0] == 200 for future in asked)
        # Where nobody waits, an estimate refuses nothing.
        gate.pass_through(1)
        assert post(server, gate_body(6, timeout=60_000_000), model="gate")[0] == 200
    assert 5.0 not in gate.entered


def test_plans_are_at_a_port_of_their_own(mx) -> None:
    models = {"digits_cnn": model(mx, "digits_cnn"), "ssd_digits": model(mx, "ssd_digits"), "plain": DIGITS}
    with mx.serve.Server(models, port=0, admin_port=0) as server:
        address = type("Address", (), {"url": server.admin})
        with contextlib.closing(connect(address)) as connection:
            for name in ("digits_cnn", "ssd_digits"):
                for path, rows in (("plan", 1), ("versions/1/plan?rows=4", 4)):
                    response, data = exchange(connection, f"/v2/models/{name}/{path}")
                    assert (response.status, f"plan for float32({rows}, 1," in data.decode()) == (200, True), data
            for path, status in (("none/plan", 404), ("digits_cnn/plan?rows=0", 400)):
                assert exchange(connection, f"/v2/models/{path}")[0].status == status
            response, data = exchange(connection, "/v2/models/plain/plan")
            assert response.status in (200, 400), data
            assert exchange(connection, "/v2/health/ready")[0].status == 200
        with contextlib.closing(connect(server)) as connection:
            assert exchange(connection, "/v2/models/digits_cnn/plan")[0].status == 404
    with mx.serve.Server(DIGITS, port=0) as server, pytest.raises(mx.MXNetError, match="admin_port"):
        server.admin  # noqa: B018


def test_lines_are_objects_where_that_is_wanted(tmp_path: Path) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    options = ("--logs", "json", "--log-requests", "on", "--port", "0", "--shape", "-1,1,8,8")
    with command(f"digits_cnn={DIGITS}", *options) as (child, server, _):
        body = json.dumps({**json.loads(digit()), "id": "seven"})
        assert post(server, body, {"traceparent": trace})[0] == 200
        assert post(server, "{", {"traceparent": trace})[0] == 400
        child.terminate()
        child.wait(60)
        lines = [json.loads(line) for line in child.stderr.read().splitlines()]
    assert [line["outcome"] for line in lines] == ["success", "invalid"]
    for line in lines:
        assert line["message"] == "request" and line["traceparent"] == trace and line["model"] == "digits_cnn"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) and line["seconds"] > 0
    assert (lines[0]["request"], "request" in lines[1]) == ("seven", False)


def test_metrics_have_the_form_that_is_asked_for(server) -> None:
    with contextlib.closing(connect(server)) as connection:
        headers = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
        response, data = exchange(connection, "/metrics", headers=headers)
        text = data.decode()
        assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        assert text.endswith("# EOF\n") and "# TYPE mxrt_requests counter\n" in text
        response, data = exchange(connection, "/metrics")
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = data.decode()
    names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    dashboard = json.loads((ROOT / "deploy/grafana/mxrt.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {re.sub(r"_(bucket|sum|count)$", "", name) for expr in asked for name in re.findall(r"\bmxrt_\w+", expr)}
    assert used and used <= names
    alerts = re.findall(r"\bmxrt_\w+", (ROOT / "deploy/prometheus/alerts.yaml").read_text())
    assert alerts and {re.sub(r"_bucket$", "", name) for name in alerts} <= names | {"mxrt_spans_lost"}, (
        "that is there with --traces"
    )
    page = (ROOT / "docs/serving-reference.md").read_text()
    assert all(f"`{name}`" in page for name in names), "every metric is in docs/serving-reference.md"


def test_a_profile_says_what_runs_meanwhile(mx) -> None:
    body, headers = request(["data"], golden("digits_cnn", 1))
    with mx.serve.Server({"digits_cnn": model(mx, "digits_cnn")}, port=0, admin_port=0) as server:
        address = type("Address", (), {"url": server.admin})

        def profile(query: str) -> tuple[int, str]:
            with contextlib.closing(connect(address)) as connection:
                response, data = exchange(connection, f"/v2/profile{query}", method="POST")
                return response.status, data.decode()

        with ThreadPoolExecutor(1) as pool:
            # On a busy machine one may be over before the others begin.
            for seconds in (2, 8, 32):
                taken = pool.submit(profile, f"?seconds={seconds}")
                time.sleep(0.5)
                other = profile("?seconds=0")[0]
                assert post(server, body, headers)[0] == 200
                in_time = not taken.done()
                status, text = taken.result()
                if in_time and other == 409:
                    break
        assert other == 409
        events = json.loads(text)["traceEvents"]
        assert status == 200
        assert any(event["name"] == "digitsnet_conv0_fwd" for event in events), {event["name"] for event in events}
        # Nothing is left of it, and the next one may be taken.
        status, text = profile("?seconds=0")
        assert status == 200
        assert "digitsnet_conv0_fwd" not in text
        assert [profile(f"?seconds={wrong}")[0] for wrong in ("61", "-1", "nan", "x")] == [400] * 4
        mx.profiler.set_state("run")
        try:
            assert profile("?seconds=0")[0] == 409
        finally:
            mx.profiler.set_state("stop")
        with contextlib.closing(connect(server)) as connection:
            assert exchange(connection, "/v2/profile", method="POST")[0].status == 404


def test_symbol_files_have_no_more_nodes_than_is_allowed(mx) -> None:
    mx.set_limits(max_nodes=3)
    try:
        with pytest.raises(mx.MXNetError, match="MXRT_MAX_NODES"):
            mx.serve.Server({"digits_cnn": model(mx, "digits_cnn")}, port=0).start()
    finally:
        mx.set_limits(max_nodes=None)


def test_a_model_of_one_core_has_one_call_at_a_time_and_others_go_on(mx, gate, tmp_path) -> None:
    gate.model.settings["cores"] = 1
    models = {"gate": gate.model, "digits_cnn": mx.serve.Model(DIGITS, cores=1), "free": mx.serve.Model(DIGITS)}
    with mx.serve.Server(models, port=0) as server, ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(post, server, gate_body(value), None, "gate") for value in (1, 2, 3)]
        waiting(server, 2)
        wait_until(lambda: len(gate.entered) == 1)
        body, headers = request(["data"], golden("digits_cnn", 3))
        texts = {post(server, body, headers, name)[1].partition("outputs")[2] for name in ("digits_cnn", "free")}
        assert len(texts) == 1 and "data" in texts.pop()
        for done in range(1, 4):
            gate.pass_through(1)
            wait_until(lambda done=done: len(gate.entered) == min(done + 1, 3))
        assert all(future.result()[0] == 200 for future in asked)
