"""`mxrt serve --traces`: a collector of OpenTelemetry gets a span for each request."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

from serving import gauge, golden, model, post, request, wait_until
from serving_grpc import ask, channel, infer_fields
from support import DIGITS, run_python

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """A server that keeps what OTLP brings: its address, and spans with their resources."""
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    found: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            asked = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
            for of in asked.resource_spans:
                names = {entry.key: entry.value.string_value for entry in of.resource.attributes}
                found.extend((names, span) for scope in of.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_port}/v1/traces", found
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def test_requests_have_spans_in_the_traces_of_their_clients(mx) -> None:
    body, headers = request(["data"], golden("digits_cnn", 1))
    began = time.time_ns()
    with (
        collector() as (url, found),
        mx.serve.Server({"digits_cnn": model(mx, "digits_cnn")}, port=0, grpc_port=0, traces=url) as server,
    ):
        parent = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        assert post(server, body, headers | parent)[0] == 200
        assert post(server, b"{", {} | parent)[0] == 400
        assert post(server, body, headers | {"traceparent": f"00-{TRACE}-{SPAN}-00"})[0] == 200
        with channel(server) as made:
            ask(
                made, "ModelInfer", metadata=[("traceparent", f"00-{TRACE}-{SPAN}-01")],
                **infer_fields("digits_cnn", {"data": golden("digits_cnn", 1)[0]}),
            )  # fmt: skip
        assert post(server, body, headers)[0] == 200
        wait_until(lambda: sum(span.name == "infer" for _, span in found) == 4)
        assert gauge(server, "mxrt_spans_lost") == 0
    spans = [span for _, span in found]
    assert all(names["service.name"] == "mxrt" for names, _ in found)
    requests = [span for span in spans if span.name == "infer"]
    ours = [span for span in requests if span.trace_id.hex() == TRACE]
    assert [span.parent_span_id.hex() for span in ours] == [SPAN] * 3
    outcomes = [{entry.key: entry.value.string_value for entry in span.attributes} for span in requests]
    assert [of["mxrt.outcome"] for of in outcomes] == ["success", "invalid", "success", "success"]
    assert all((of["mxrt.model"], of["mxrt.version"]) == ("digits_cnn", "1") for of in outcomes)
    below = {span.parent_span_id: span for span in spans if span.name == "compute"}
    assert set(below) == {span.span_id for span, of in zip(requests, outcomes, strict=True) if "success" in of.values()}
    for span in requests:
        assert began <= span.start_time_unix_nano <= span.end_time_unix_nano <= time.time_ns()
        if inner := below.get(span.span_id):
            assert inner.trace_id == span.trace_id
            assert span.start_time_unix_nano <= inner.start_time_unix_nano <= inner.end_time_unix_nano
            assert inner.end_time_unix_nano <= span.end_time_unix_nano
    assert len({span.span_id for span in spans}) == len(spans)


def test_spans_that_wait_are_sent_when_the_server_ends(mx) -> None:
    body, headers = request(["data"], golden("digits_cnn", 1))
    with collector() as (url, found):
        with mx.serve.Server({"digits_cnn": model(mx, "digits_cnn")}, port=0, traces=url) as server:
            for _ in range(5):
                post(server, body, headers)
        assert sum(span.name == "infer" for _, span in found) == 5


def test_a_collector_that_is_not_there_costs_no_request() -> None:
    code = """
    import sys
    import mxrt as mx
    sys.path.insert(0, sys.argv[2])
    from serving import golden, model, post, request

    body, headers = request(["data"], golden("digits_cnn", 1))
    models = {"digits_cnn": model(mx, "digits_cnn")}
    with mx.serve.Server(models, port=0, traces="http://127.0.0.1:9/v1/traces") as server:
        print({post(server, body, headers)[0] for _ in range(20)})
    """
    result = run_python(code, DIGITS, DIGITS.parents[1], env={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    assert (result.returncode, result.stdout.strip()) == (0, "{200}"), result


def test_without_the_exporter_it_is_said_how_to_get_it() -> None:
    code = """
    import sys
    sys.modules["opentelemetry.exporter.otlp.proto.http.trace_exporter"] = None
    import mxrt as mx

    try:
        mx.serve.Server(sys.argv[1], port=0, traces="http://127.0.0.1:9").start()
    except mx.MXNetError as error:
        print(error)

    from mxrt.cli._main import main

    words = ["serve", sys.argv[1], "--shape", "1,1,8,8", "--check", "--traces", "http://127.0.0.1:9"]
    print("status", main(words))
    """
    result = run_python(code, DIGITS)
    assert "pip install 'mxrt[otlp]' [MX-NONE]" in result.stdout, result
    assert "status 2" in result.stdout and "pip install 'mxrt[otlp]' [MX-NONE]" in result.stderr, result
