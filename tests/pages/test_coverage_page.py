"""docs/coverage.md: every public name of MXNet 1.9.1, whether it is here, and why not."""

from __future__ import annotations

import contextlib
import importlib
import os
import textwrap
from collections import defaultdict

import pytest

from support import ROOT
from test_mxnet_surface import ABSENT, MISSING, SURFACE, excused, listed, our

WHOLE = "the whole module"
PAGE = ROOT / "docs" / "coverage.md"
HEAD = """# Coverage of MXNet's interface

Written by tests/pages/test_coverage_page.py from what MXNet 1.9.1 has and mxrt has; do not edit.

Each row is a module of MXNet and its public names: functions, classes, modules and values. `mx.np`
and `mx.npx` are not counted. A name that is missing is listed below with the reason.
[Differences](differences.md) tells where a name behaves in another way. [Operators](operators.md)
lists what `mx.nd` and `mx.sym` compute.

"""


def public_modules() -> dict[str, list[str]]:
    """Modules of MXNet, and the public names of each."""
    modules = {}
    for module, kinds in SURFACE["modules"].items():
        if not any(part.startswith("_") for part in module.split(".")):
            names = {name for names in kinds.values() for name in names if not name.startswith("_")}
            if names:
                modules[module] = sorted(names - {"requests"})
    return modules


def reason(table: dict[str, str], name: str) -> str:
    """The reason why a name is missing."""
    return next(why for why, names in table.items() if excused(name, names.split()))


def lacking(module: str, names: list[str]) -> tuple[dict[str, list[str]], str | None]:
    """Missing names by reason; the reason why the whole module is missing, or None."""
    within = module.removeprefix("mxnet.")
    for why, modules in ABSENT.items():
        if any(within == one or within.startswith(f"{one}.") for one in modules.split()):
            return {why: names}, why
    ours, missing = importlib.import_module(our(module)), defaultdict(list)
    for name in names:
        if not hasattr(ours, name):
            missing[reason(MISSING, name)].append(name)
    return missing, None


def import_all() -> None:
    """Imports every module that is here: a package has it as an attribute from then on."""
    for module in SURFACE["modules"]:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(our(module))


def page() -> str:
    import_all()
    rows, reasons, have, total = [], defaultdict(lambda: defaultdict(list)), 0, 0
    for module, names in public_modules().items():
        missing, whole = lacking(module, names)
        here = len(names) - sum(map(len, missing.values()))
        have, total = have + here, total + len(names)
        short = module.replace("mxnet", "mx", 1)
        rows.append(f"| `{short}` | {here} | {len(names)} |")
        for why, lost in missing.items():
            for name in [WHOLE] if whole else lost:
                reasons[why][name].append(f"`{short}`")
    text = f"{HEAD}{have:,} of {total:,} names are here.\n\n| module | here | in MXNet |\n| --- | --- | --- |\n"
    text += "\n".join(rows) + "\n\n## What is missing\n"
    for why in sorted(reasons):
        text += f"\n### Reason: {why}\n\n"
        for name, modules in sorted(reasons[why].items()):
            line = f"* {name if name == WHOLE else f'`{name}`'}: {', '.join(modules)}"
            text += textwrap.fill(line, 100, subsequent_indent="  ", break_long_words=False) + "\n"
    return text


def test_the_page_of_coverage_is_up_to_date(mx) -> None:
    wanted = page()
    if os.environ.get("MXRT_WRITE"):
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, "docs/coverage.md is old; MXRT_WRITE=1 lets this test write it"


@pytest.mark.parametrize(
    ("module", "name", "why"),
    [("mxnet.ndarray", "adam_update", "belongs to training"), ("mxnet.module", "Module", None)],
)
def test_a_name_is_missing_with_its_reason_or_here(mx, module: str, name: str, why: str | None) -> None:
    assert name in public_modules()[module]
    found, whole = lacking(module, [name])
    assert whole is None and dict(found) == ({} if why is None else {why: [name]})


def test_names_without_a_reason_are_noticed(mx) -> None:
    with pytest.raises(StopIteration):
        lacking("mxnet.ndarray", ["a_name_that_no_table_has"])
    assert listed(MISSING)
