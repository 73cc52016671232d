"""Spans of requests go to a collector, by OpenTelemetry's exporter (``mxrt[otlp]``)."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any

from .. import _mxrt
from ..base import MXNetNotImplementedError

#: Seconds between two looks for new spans, and between two looks whether the server has ended.
PAUSE, LOOK = 1.0, 0.05
#: Spans that a collector gets at a time.
AT_ONCE = 512


class Exporter:
    """A thread that takes spans from a server and hands them over.

    A collector that does not answer costs spans, and no request anything.
    """

    def __init__(self, server: Any, url: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError as error:
            raise MXNetNotImplementedError(
                f"traces: the exporter of OpenTelemetry is not there ({error}): pip install 'mxrt[otlp]'"
            ) from None
        self._server = server
        self._exporter: Any = OTLPSpanExporter(endpoint=url)
        # OTEL_RESOURCE_ATTRIBUTES says more.
        self._resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "mxrt")})
        self._scope = InstrumentationScope("mxrt.serve", _mxrt.__version__)
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="mxrt-traces", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Hands over what is left, and ends."""
        self._ended = True
        self._thread.join(30)

    def _run(self) -> None:
        ended = False
        while not ended:
            due = time.monotonic() + PAUSE
            while not self._ended and time.monotonic() < due:
                time.sleep(LOOK)
            ended = self._ended
            spans = [span for row in self._server.spans() for span in self._made(*row)]
            for first in range(0, len(spans), AT_ONCE):
                self._exporter.export(spans[first : first + AT_ONCE])
        self._exporter.shutdown()

    def _made(self, numbers: Any, times: Any, of: Any) -> list[Any]:
        """The span of a request, and one below it for the time in which it waited and computed."""
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        (trace, number, parent), (began, computed, ended), (model, version, outcome) = numbers, times, of
        failed = outcome in ("failed", "memory", "device", "hook")

        def context(span: int, remote: bool = False) -> SpanContext:
            return SpanContext(trace, span, remote, TraceFlags(TraceFlags.SAMPLED))

        def span(name: str, number: int, below: SpanContext | None, times: tuple[int, int], **more: Any) -> Any:
            return ReadableSpan(
                name=name, context=context(number), parent=below, resource=self._resource,
                instrumentation_scope=self._scope, start_time=times[0], end_time=times[1], **more,
            )  # fmt: skip

        request = span(
            "infer", number, None if parent is None else context(parent, True), (began, ended), kind=SpanKind.SERVER,
            attributes={"mxrt.model": model, "mxrt.version": version, "mxrt.outcome": outcome},
            status=Status(StatusCode.ERROR, outcome) if failed else Status(),
        )  # fmt: skip
        if computed is None:
            return [request]
        return [request, span("compute", random.getrandbits(63) + 1, context(number), computed)]
