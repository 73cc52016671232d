"""docs/api.md: every public name of the package with its arguments and its description."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from support import ROOT

PAGE = ROOT / "docs" / "api.md"
#: Modules, in the order of the page. A name is at the first of them that has it.
MODULES = """
ndarray symbol gluon gluon.nn gluon.rnn gluon.data gluon.data.vision gluon.data.vision.transforms
gluon.model_zoo.vision gluon.utils module model executor io image recordio metric serve context engine
profiler random runtime operator visualization contrib.quantization base testing initializer rnn util
attribute name monitor callback
""".split()
SHORT = {"ndarray": "nd", "symbol": "sym", "module": "mod", "visualization": "viz", "initializer": "init"}
HEAD = """# Python interface

Written by tests/pages/test_api_page.py from the package; do not edit.

`help(mx.gluon.SymbolBlock)` prints the whole text of a name: shapes, types, units and errors. Here
are its arguments and the first sentence. [Operators](operators.md) are the functions of `mx.nd` and
`mx.sym` that compute.
"""


def public(module: Any) -> list[str]:
    """Names that a module gives to programs."""
    listed = getattr(module, "__all__", None) or [n for n, one in vars(module).items() if _is_own(one, module)]
    return sorted(name for name in listed if not name.startswith("_"))


def _is_own(one: Any, module: Any) -> bool:
    return callable(one) and getattr(one, "__module__", "").startswith(module.__name__)


def first_sentence(thing: Any) -> str:
    """The begin of a description, in one line of Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    end = next((i + 1 for i, c in enumerate(text) if c == "." and text[i + 1 : i + 2] in ("", " ")), len(text))
    return text[:end].removesuffix(".")


def arguments(thing: Any) -> str:
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return "..."
    words = []
    for one in found:
        if one.name in ("self", "cls"):
            continue
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        words.append(f"{star}{one.name}" + ("" if one.default is one.empty else f"={_shown(one.default)}"))
    return ", ".join(words)


def _shown(default: Any) -> str:
    # Python 3.14 takes partial functions, which have no name, for routines.
    if (isinstance(default, type) or inspect.isroutine(default)) and hasattr(default, "__name__"):
        return str(default.__name__)
    text = repr(default)
    return "..." if " at 0x" in text or len(text) > 40 else text


def members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class has of its own."""
    for name, one in vars(thing).items():
        if not name.startswith("_") and (callable(one) or isinstance(one, (property, classmethod, staticmethod))):
            yield name, one


def described() -> Iterator[tuple[str, str, Any]]:
    """Module, name and object of every public name, each object once."""
    seen: set[int] = set()
    for where in [*MODULES, ""]:
        module = importlib.import_module(f"mxrt.{where}" if where else "mxrt")
        for name in public(module):
            thing = getattr(module, name)
            if inspect.ismodule(thing) or not callable(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            yield where, name, thing


def line(text: str, indent: str = "") -> str:
    """An entry of a list. A product stays in one line, as its sign would begin another entry."""
    options = {"initial_indent": indent, "subsequent_indent": f"{indent}  "}
    kept = text[2:].replace(" * ", "\0*\0")
    return textwrap.fill(f"* {kept}", 100, break_long_words=False, break_on_hyphens=False, **options).replace("\0", " ")


def page() -> str:
    text, before = HEAD, None
    for where, name, thing in described():
        if where != before:
            text += f"\n## mx{'.' if where else ''}{SHORT.get(where, where)}\n\n"
            before = where
        text += line(f"* `{name}({arguments(thing)})`: {first_sentence(thing)}") + "\n"
        if inspect.isclass(thing) and thing.__module__.startswith("mxrt"):
            for member, one in members(thing):
                found = one if isinstance(one, property) else getattr(thing, member)
                call = member if isinstance(one, property) else f"{member}({arguments(found)})"
                text += line(f"* `{call}`: {first_sentence(found)}", "  ") + "\n"
    return text


def test_the_page_of_the_interface_is_up_to_date(mx) -> None:
    wanted = page()
    if os.environ.get("MXRT_WRITE"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "docs/api.md is old; MXRT_WRITE=1 lets this test write it"


def test_every_public_name_has_a_description(mx) -> None:
    found = list(described())
    assert len(found) > 400
    lacking = [f"{where}.{name}" for where, name, thing in found if not first_sentence(thing)]
    for where, name, thing in found:
        if inspect.isclass(thing) and thing.__module__.startswith("mxrt"):
            of = ((m, one if isinstance(one, property) else getattr(thing, m)) for m, one in members(thing))
            lacking += [f"{where}.{name}.{member}" for member, one in of if not first_sentence(one)]
    assert lacking == []
