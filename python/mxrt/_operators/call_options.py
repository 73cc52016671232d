"""Options of calls. Written by crates/mxrt/tests/interface/settings_page.rs; do not edit."""

from __future__ import annotations

from typing import TypedDict


class CallOptions(TypedDict, total=False):
    """The keywords of a call of a compiled graph; docs/settings.md says what they do."""

    priority: int
    deadline: float | None
    cancel_on_drop: bool
