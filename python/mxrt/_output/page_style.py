"""Style that the pages of mxrt share: light and dark, wide and narrow."""

from __future__ import annotations

from html import escape

__all__ = ["STYLE", "breakable"]

STYLE = """
:root{--paper:#fcfcfa;--ink:#1c1d21;--faint:#6a6d75;--line:#dddcd6;--card:#fff}
@media (prefers-color-scheme:dark){:root{
--paper:#16171a;--ink:#e8e7e3;--faint:#9a9da6;--line:#34363c;--card:#1e2024}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.5rem;margin:0 0 .2rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:2rem 0 .5rem}
p{margin:.3rem 0;color:var(--faint)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0}
.fact{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}
.fact b{display:block;font-size:1.15rem;font-variant-numeric:tabular-nums}
.fact span{color:var(--faint);font-size:.82rem}
"""


def breakable(text: str) -> str:
    """Text for a page whose long names may continue in the next line after an underline."""
    return escape(text).replace("_", "_<wbr>")
