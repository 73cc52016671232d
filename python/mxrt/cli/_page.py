"""The page of `mxrt plan --html`: one file, without scripts of others, for light and dark, wide and
narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .._output.page_style import STYLE, breakable
from ._out import megabytes, shape_text

__all__ = ["page"]

# Families of operators with the words in their names, without underlines, in the order of looking.
_FAMILIES = (
    ("moving", ("toblocked", "fromblocked", "tolines")),
    ("convolution", ("convolution", "mkldnnconv")),
    ("dense", ("fullyconnected", "attention", "selfatt", "dot", "gemm", "matmul", "rnn")),
    ("pooling", ("pooling",)),
    ("normalisation", ("norm", "scaleshift", "softmax", "lrn")),
    ("moving", ("transpose", "reshape", "concat", "slice", "swap", "pad", "copy")),
)

_STYLE = """
:root{--shade:#f1f0eb;
--convolution:#2f6db5;--dense:#b3572b;--pooling:#3c8a5f;--normalisation:#8457a8;--moving:#8d8a7d;--other:#b08a1e;
--area:#2f6db533}
@media (prefers-color-scheme:dark){:root{
--shade:#26282d;--convolution:#6ba3e3;--dense:#e08a5c;--pooling:#66bd8e;--normalisation:#b88bdb;--moving:#a5a296;--other:#d9b348;--area:#6ba3e333}}
.line{display:flex;height:2.6rem;border-radius:.4rem;overflow:hidden;gap:1px;background:var(--line)}
.line a{min-width:1px;height:100%}
.line a:hover,.line a:focus-visible{filter:brightness(1.2);outline:2px solid var(--ink);outline-offset:-2px}
.keys{display:flex;flex-wrap:wrap;gap:.3rem 1rem;margin:.5rem 0;color:var(--faint);font-size:.85rem}
.keys i{display:inline-block;width:.8em;height:.8em;border-radius:.2em;margin-right:.35em;vertical-align:-.05em}
svg{display:block;width:100%;height:8rem;background:var(--card);border:1px solid var(--line);border-radius:.5rem}
svg rect.hit{fill:transparent}svg rect.hit:hover{fill:var(--area)}
ol{list-style:none;margin:0;padding:0}
li{position:relative;display:grid;grid-template-columns:2.4rem minmax(0,1fr) 9rem;gap:.2rem .8rem;align-items:center;
background:var(--card);border:1px solid var(--line);border-left:.3rem solid var(--family);border-radius:.4rem;
padding:.45rem .8rem .45rem .6rem;margin:.3rem 0;scroll-margin:2rem}
li:target{outline:2px solid var(--family)}
.number{color:var(--faint);text-align:right;font-variant-numeric:tabular-nums}
.name{overflow-wrap:anywhere}.name small{color:var(--faint);display:block}
.time{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bar{height:.35rem;border-radius:.2rem;background:var(--family);margin-top:.25rem;margin-left:auto}
.chip{display:inline-block;background:var(--shade);border-radius:.3rem;padding:0 .4rem;
margin:.15rem .2rem 0 0;font-size:.82rem}
.more{display:none;grid-column:2/-1;color:var(--faint);font-size:.86rem}
li:hover .more,li:focus .more,li:target .more{display:block}
.more dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem .8rem;margin:.3rem 0 0}
.more dt{color:var(--faint)}.more dd{margin:0;color:var(--ink);overflow-wrap:anywhere}
@media (max-width:34rem){li{grid-template-columns:1.6rem minmax(0,1fr) 5.2rem}.line{height:2rem}}
@media print{.more{display:block}}
"""


def family(operator: str) -> str:
    """The family of an operator, which has a colour of its own."""
    word = operator.lower().replace("_", "")
    return next((name for name, parts in _FAMILIES if any(part in word for part in parts)), "other")


def page(report: Mapping[str, Any]) -> str:
    """The page of a plan: `report` is that of `plan_report`, with `model`, `precision`, `inputs`,
    `layers` (their number) and, in each step, `covers`.

    Everything that comes from a model is escaped.
    """
    steps = report["steps"]
    measured = report["measured_us"] is not None
    times = [float(one["measured_us"] if measured else one["estimated_us"]) for one in steps]
    body = [
        f"<h1>{escape(report['model'])}</h1>",
        f"<p>{escape(_inputs(report))} · precision {escape(report['precision'])} · times "
        f"{'measured, the shortest of a few runs' if measured else 'estimated for one core'}</p>",
        _facts(report, times),
        *(f"<p>{escape(text)}</p>" for text in report["notes"]),
        "<h2>Where the time goes</h2>",
        _time_line(steps, times),
        _keys(steps),
        "<h2>Memory over time</h2>",
        _memory(steps),
        "<p>Bytes that each step works on, from the first step to the last.</p>",
        "<h2>Steps</h2>",
        "<p>Point at a step, or choose it above, for its shape, kernel, memory and the layers that it computes.</p>",
        "<ol>"
        + "".join(_step(one, time, max(times, default=0), sum(times)) for one, time in zip(steps, times, strict=True))
        + "</ol>",
    ]
    title = escape(f"{report['model']}: plan")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}{_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _inputs(report: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {shape_text(shape)}" for name, shape in report["inputs"].items())


def _facts(report: Mapping[str, Any], times: Sequence[float]) -> str:
    rows = [
        (f"{sum(times) / 1e3:.3f} ms", "time of all steps"),
        (str(len(times)), f"steps for {report['layers']} layers"),
        (megabytes(report["arena_bytes"]), "memory of a call"),
        (megabytes(report["packed_bytes"]), "packed weights"),
    ]
    if (parts := report["parts"]) is not None:
        rows.append((f"{parts['rows_of_a_part']} of {parts['rows']}", "rows of a part"))
    return '<div class="facts">' + "".join(
        f'<div class="fact"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in rows
    ) + "</div>"  # fmt: skip


def _time_line(steps: Sequence[Mapping[str, Any]], times: Sequence[float]) -> str:
    total = sum(times) or 1.0
    return '<div class="line">' + "".join(
        f'<a href="#s{one["step"]}" style="flex:{max(time / total, 1e-4):.5f};'
        f'background:var(--{family(one["operator"])})" '
        f'title="{escape(_hover(one, time, total))}" aria-label="{escape(_hover(one, time, total))}"></a>'
        for one, time in zip(steps, times, strict=True)
    ) + "</div>"  # fmt: skip


def _hover(step: Mapping[str, Any], time: float, total: float) -> str:
    return f"{step['node']}: {step['operator']}, {step['output']}, {time:.1f} us, {100 * time / total:.1f} %"


def _keys(steps: Sequence[Mapping[str, Any]]) -> str:
    used = dict.fromkeys(family(one["operator"]) for one in steps)
    return '<div class="keys">' + "".join(
        f'<span><i style="background:var(--{name})"></i>{name}</span>' for name in used
    ) + "</div>"  # fmt: skip


def _memory(steps: Sequence[Mapping[str, Any]]) -> str:
    """An area of the bytes of each step, in a picture of 1000 by 100."""
    most = max((one["arena_bytes"] for one in steps), default=0) or 1
    width = 1000 / max(len(steps), 1)
    points, hits = ["0,100"], []
    for number, one in enumerate(steps):
        top = 100 - 88 * one["arena_bytes"] / most
        points += [f"{number * width:.2f},{top:.2f}", f"{(number + 1) * width:.2f},{top:.2f}"]
        words = escape(f"{one['step']} {one['node']}: {megabytes(one['arena_bytes'])}")
        hits.append(
            f'<rect class="hit" x="{number * width:.2f}" y="0" width="{width:.2f}" height="100">'
            f"<title>{words}</title></rect>"
        )
    points.append("1000,100")
    return (
        f'<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label="memory of each step, at most '
        f'{escape(megabytes(most))}"><polygon points="{" ".join(points)}" fill="var(--area)" '
        f'stroke="var(--convolution)" stroke-width="1" vector-effect="non-scaling-stroke"/>{"".join(hits)}</svg>'
        f'<div class="keys"><span>at most {escape(megabytes(most))}</span></div>'
    )


def _step(step: Mapping[str, Any], time: float, longest: float, total: float) -> str:
    chips = "".join(
        f'<span class="chip" title="{escape(one["node"])}">{breakable(one["operator"])}</span>'
        for one in step["covers"]
    )
    share = f"{100 * time / total:.1f} %" if total else ""
    facts = [
        ("output", step["output"]),
        ("kernel", step["kernel"]),
        ("works on", megabytes(step["arena_bytes"])),
        ("packed weights", megabytes(step["packed_bytes"])),
        ("estimate", f"{step['estimated_us']:.1f} us on one core"),
        ("also computes", ", ".join(one["node"] for one in step["covers"]) or "nothing else"),
    ]
    details = "".join(f"<dt>{name}</dt><dd>{breakable(str(value))}</dd>" for name, value in facts)
    return (
        f'<li id="s{step["step"]}" tabindex="0" style="--family:var(--{family(step["operator"])})">'
        f'<div class="number">{step["step"]}</div>'
        f'<div class="name">{breakable(step["node"])}'
        f"<small>{escape(step['operator'])} → {escape(step['output'])}</small>{chips}</div>"
        f'<div class="time">{time:.1f} us<br><small>{share}</small>'
        f'<div class="bar" style="width:{100 * time / longest if longest else 0:.1f}%"></div></div>'
        f'<div class="more"><dl>{details}</dl></div></li>'
    )
