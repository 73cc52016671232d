"""The page of `mxrt quantize --html`: one file, for light and dark, wide and narrow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from .._output.page_style import STYLE, breakable
from ..cli._out import megabytes

__all__ = ["page", "percent"]

_COLUMNS = ("runs in", "range", "clipped", "signal to noise", "error alone")

_STYLE = """
:root{--bytes:#2f6db5;--float:#b3572b}
@media (prefers-color-scheme:dark){:root{--bytes:#6ba3e3;--float:#e08a5c}}
table{border-collapse:collapse;width:100%}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right;font-variant-numeric:tabular-nums}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere;min-width:12rem}
td{white-space:nowrap}td:first-child{white-space:normal}
td small{display:block;color:var(--faint)}
.bar{height:.35rem;border-radius:.2rem;background:var(--bytes);margin-top:.25rem;margin-left:auto}
.kept .bar{background:var(--float)}.kept td:nth-child(2){color:var(--float)}
@media (max-width:44rem){thead{display:none}table,tbody{display:block}
tr{display:grid;grid-template-columns:1fr 1fr;border-bottom:1px solid var(--line);padding:.5rem 0}
td{border:0;padding:.1rem .3rem;text-align:left}td:first-child{grid-column:1/-1}
td[data-of]::before{content:attr(data-of) " ";color:var(--faint)}.bar{margin-left:0}}
"""


def percent(share: float) -> str:
    """A share as text."""
    return f"{100 * share:.2f} %"


def page(report: Mapping[str, Any]) -> str:
    """The page of a report. Everything that comes from a model is escaped."""
    name = str(report.get("model", "model"))
    layers = report["layers"]
    kept = sum(one["float32"] for one in layers)
    what = {
        "accuracy": "Accuracy is the share of samples whose best class is their label.",
        "agreement": "Agreement is the share of samples whose best class is that of the float32 model.",
        "likeness": "Likeness is 1 less the error of the outputs, relative to their size.",
    }[report["measure"]]
    budget = "none" if report["budget"] is None else percent(report["budget"])
    facts = [
        (percent(report["before"]), f"{report['measure']} in float32"),
        (percent(report["after"]), f"{report['measure']} quantized"),
        (budget, "budget"),
        (f"{len(layers) - kept} of {len(layers)}", "layers on integers"),
        (str(report["samples"]), "samples"),
        (megabytes(report["bytes_after"]), f"parameters, {megabytes(report['bytes_before'])} before"),
    ]
    most = max((one["output_error"] for one in layers), default=0.0) or 1.0
    rows = "".join(_row(one, most) for one in layers)
    head = "".join(f"<th>{title}</th>" for title in ("layer", *_COLUMNS))
    body = (
        f"<h1>{escape(name)}</h1><p>{what}</p>"
        '<div class="facts">'
        + "".join(f'<div class="fact"><b>{escape(value)}</b><span>{escape(of)}</span></div>' for value, of in facts)
        + "</div><h2>Layers</h2><p>The error alone is that of the outputs, relative to their size, if only this layer "
        "is quantized. Layers with the largest errors stay in float32 until the budget holds.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(name)}: quantized</title><style>{STYLE}{_STYLE}</style></head>\n"
        f"<body><main>{body}</main></body></html>\n"
    )


def _row(layer: Mapping[str, Any], most: float) -> str:
    low, high = layer["range"]
    ratio = layer["snr_db"]
    values = (
        "float32" if layer["float32"] else "int8",
        f"{low:.4g} to {high:.4g}",
        percent(layer["clipped"]),
        f"{ratio:.1f} dB" if math.isfinite(ratio) else "exact",
        f"{percent(layer['output_error'])}"
        f'<div class="bar" style="width:{100 * layer["output_error"] / most:.1f}%"></div>',
    )
    first, *joined = layer["layers"]
    return (
        f'<tr class="{"kept" if layer["float32"] else "bytes"}">'
        f'<td title="{escape(layer["name"])}">{breakable(first)}'
        f"<small>{breakable(', '.join(joined))}</small></td>"
        + "".join(f'<td data-of="{of}">{value}</td>' for of, value in zip(_COLUMNS, values, strict=True))
        + "</tr>"
    )
