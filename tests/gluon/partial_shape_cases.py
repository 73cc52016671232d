"""Shapes that follow from shapes which are known in part. With MXNet 1.9.1 installed, running this
file writes the answers in ``tests/recorded/partial_shapes.json`` again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "recorded/partial_shapes.json"


class Case(NamedTuple):
    """An operator over variables, and the shapes of some of them; 0 is an unknown extent."""

    operator: str
    keywords: list[str | None]
    attrs: dict[str, Any]
    given: list[list[int] | None]
    arguments: list[list[int]]
    outputs: list[list[int]]
    states: list[list[int]]

    def infer(self, mx: Any) -> list[list[list[int]]]:
        """Shapes that a package infers for arguments, outputs and auxiliary states."""
        make = mx.sym
        for part in self.operator.split("."):
            make = getattr(make, part)
        variables = [mx.sym.var(f"in{place}") for place in range(len(self.given))]
        pairs = list(zip(self.keywords, variables, strict=True))
        named = {key: one for key, one in pairs if key}
        attrs = {key: _tuples(value) for key, value in self.attrs.items()}
        made = make(*[one for key, one in pairs if not key], **named, **attrs, name="n")
        made = mx.sym.Group(list(made)) if isinstance(made, (list, tuple)) else made
        known = {f"in{place}": tuple(shape) for place, shape in enumerate(self.given) if shape is not None}
        return [[list(shape) for shape in part] for part in made.infer_shape_partial(**known)]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def cases() -> list[Case]:
    """All cases of the file."""
    return [Case(*row) for row in json.loads(FILE.read_text())]


def main() -> None:
    """Writes the answers of MXNet."""
    import mxnet as mx

    rows = [json.dumps([*case[:4], *case.infer(mx)], separators=(",", ":")) for case in cases()]
    FILE.write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
