"""`mxrt explain`: the page of an error."""

from __future__ import annotations

import argparse
import textwrap

from ._errors import GOOD, UsageError
from ._main import close_to
from ._out import print_json, style
from ._pages import PAGES, Page, find_page

__all__ = ["add_arguments", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    parser.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="code, kind or class of an error, such as MX-SHAPE, shape or MXNetShapeError",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Runs the command; without a code it lists all."""
    if args.code is None:
        if args.json:
            print_json([page.as_dict() for page in PAGES])
        else:
            for page in PAGES:
                print(f"{style(page.code, 'bold'):16s} {page.name}: {page.summary}")
        return GOOD
    found = find_page(args.code)
    if found is None:
        known = [name for page in PAGES for name in page.names]
        raise UsageError(
            f"there is no error '{args.code}', and mxrt explain without a code lists all{close_to(args.code, known)}"
        )
    if args.json:
        print_json(found.as_dict())
    else:
        print(_as_text(found))
    return GOOD


def _as_text(page: Page) -> str:
    def paragraph(text: str) -> str:
        return textwrap.fill(text, 88, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)

    return "\n".join(
        [
            f"{style(page.code, 'bold')}  {page.name}, kind '{page.kind}'",
            "",
            paragraph(page.summary),
            "",
            style("An example", "bold"),
            textwrap.indent(page.example, "  "),
            "",
            style("Why it happens", "bold"),
            paragraph(page.cause),
            "",
            style("What to do", "bold"),
            *(textwrap.fill(one, 88, initial_indent="  - ", subsequent_indent="    ") for one in page.remedies),
        ]
    )
