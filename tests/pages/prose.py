"""Checks the English of pages, doc comments, docstrings, comments of C headers and texts for users,
against a list of phrases, and doc comments by a rule for their beginnings.
`tests/pages/test_pages.py` runs it.

`python tests/pages/prose.py FILE...` prints the findings of these files.
"""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Copied from elsewhere; generated from texts that are checked where they are written; sources of
# kernels, whose images depend on every byte.
_NOT_OURS = (
    "tests/conformance/",
    "tests/models/",
    "crates/serve/src/grpc/generated/",
    "crates/cuda-kernels/cuda/",
    "crates/cuda-kernels/tests/host/",
    "python/mxrt/_mxrt.pyi",
    "tests/pages/prose.py",
)


@dataclass(frozen=True)
class Phrase:
    """A phrase that reads as a translation. `unless` matches the uses that are right."""

    wrong: str
    better: str
    unless: str = r"(?!)"


_NUMBER = r"(?:one|two|three|four|eight|sixteen|some|several|a few|\d+)"

PHRASES = [
    Phrase(
        r"\bat a time\b", "concurrently", rf"\b{_NUMBER}(?: [\w`-]+){{0,4}} at a time\b|\bat a time (?:when|that|of)\b"
    ),
    Phrase(
        r"\bbehind\b",
        "after, or following",
        r"\bbehind (?:(?:a|an|one|the|its) )?(?:[\w-]+ )?"
        r"(?:interface|trait|gate|proxy|gateway|firewall|lock|mutex|pointer|reference|handle|feature|flag|scenes)s?\b"
        r"|\bqueue\w*(?: \w+){0,3} behind\b"
        r"|\b(?:leave|leaves|left|leaving|stay|stays|fall|falls|lag|lags)(?: \w+){0,3} behind\b",
    ),
    Phrase(
        r"\b(?:lies|lie|lying|lay)\b",
        "is stored, or is",
        r"\b(?:lies|lie|lying|lay) (?:within|between|outside|inside|above|below|on (?:the|a) \w+ (?:side|edge)|out\b)"
        r"|\bto lay out\b",
    ),
    Phrase(r"\bbeside\b", "next to, besides, or in addition to"),
    Phrase(r"\bin turns\b", "interleaved, or alternately", r"\bin turns of\b"),
    Phrase(r"\bby turns\b", "alternately"),
    Phrase(r"\blately\b", "recently"),
    Phrase(r"\b(?:its|their|the) kin\b", "similar ones"),
    Phrase(r"\blisten(?:s|ed|ing)? at\b", "listen on"),
    Phrase(r"\b(?:is|are|was|were|none|not|be) said\b", "given, or specified"),
    Phrase(r"\banew\b", "again"),
    Phrase(r"\bfrom afar\b", "from memory, or from a distance"),
    Phrase(r"\bby and by\b", "gradually"),
    Phrase(r"\bthe way out\b", "what works instead"),
    Phrase(r"\bfor want of\b", "for lack of"),
    Phrase(r"\bas ever\b", "as usual"),
    Phrase(r"\bgo(?:es)? on\b", "continue", r"\bgo(?:es)? on to\b"),
    Phrase(r"\bso many\b", "that many, or the name of the number", r"\bso many(?: [\w`]+)? that\b"),
    Phrase(r"\bbut for\b", "except for"),
    Phrase(r"\bnow and then\b", "periodically, or occasionally"),
    Phrase(r"\bin the making\b", "being made"),
    Phrase(r"\bas (?:it is|they are)(?=[.,;:)]|$)", "unchanged"),
    Phrase(r"\bhas place\b|\bfinds place\b", "fits"),
    Phrase(r"\b(?:who|whoever) comes\b", "a request (thread, caller) that arrives"),
    Phrase(r"\bhe\b|\bhis\b", "it, or they", r"\bHe(?:'s| et al)\b"),
]

# A doc comment begins with a verb in the third person or with a noun, and stands alone.
_BEGINNING = re.compile(
    r"(?i)(?:of|as|what|which|where|who|whose|whom|why|when|if|in|for|by|from|with|at|on|to|that|those|these|"
    r"it|its|they|their|them|like|and|or|but|so|also|then|only|the same|behind|beside|because|since|while|unless|"
    r"until|not|see)\b(?![-:/])"
)


@dataclass(frozen=True)
class Finding:
    """A line of a file, and what is wrong there."""

    line: int
    message: str


def files() -> list[str]:
    """The files that hold prose of the project."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kinds = (".md", ".rs", ".py", ".h", ".hpp")
    return [
        name
        for name in listed.stdout.splitlines()
        if name.endswith(kinds) and not name.startswith(_NOT_OURS) and (ROOT / name).is_file()
    ]


def findings(name: str) -> list[Finding]:
    """The findings of a file, in the order of its lines."""
    text = (ROOT / name).read_text()
    found = []
    for begin, lines, is_doc in itertools.chain(_blocks(name, text), _texts(name, text)):
        if is_doc and (beginning := _BEGINNING.match(lines[0])):
            found.append(Finding(begin, f"a doc comment begins with a verb or a noun, not with {beginning[0]!r}"))
        prose, starts = _joined(lines)
        for phrase in PHRASES:
            wrong = list(re.finditer(phrase.wrong, prose, re.I))
            right = [match.span() for match in re.finditer(phrase.unless, prose, re.I)] if wrong else []
            for match in wrong:
                if not any(low <= match.start() and match.end() <= high for low, high in right):
                    line = begin + sum(start <= match.start() for start in starts) - 1
                    found.append(Finding(line, f"{match[0]!r}: better {phrase.better}"))
    return sorted(found, key=lambda finding: finding.line)


def _joined(lines: list[str]) -> tuple[str, list[int]]:
    """The lines as one text without quoted code and addresses, and where each of them begins."""
    prose, starts = "", []
    for line in lines:
        starts.append(len(prose))
        prose += line + " "
    blank = lambda match: re.sub(r"[^ ]", "_", match[0])  # noqa: E731
    return re.sub(r"``?[^`]*``?|\]\([^)]*\)|https?://\S+", blank, prose), starts


def _blocks(name: str, text: str) -> Iterator[tuple[int, list[str], bool]]:
    """Passages of prose: the number of the first line, the lines, and whether the passage begins a
    doc comment.
    """
    if name.endswith(".md"):
        yield from _pages(text)
    elif name.endswith(".rs"):
        yield from _doc_comments(text)
    elif name.endswith(".py"):
        yield from _docstrings(text)
    else:
        for match in re.finditer(r"/\*.*?\*/|//[^\n]*(?:\n\s*//[^\n]*)*", text, re.S):
            lines = [re.sub(r"^\s*(?:/\*+|\*/|\*|//[/!]?)\s?|\*/$", "", line) for line in match[0].splitlines()]
            yield text.count("\n", 0, match.start()) + 1, lines, False


def _without_code(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Paragraphs outside of fenced and indented code, with the index of their first line."""
    fenced, paragraph, begin = False, [], 0
    for index, line in enumerate([*lines, ""]):
        fence = line.lstrip().startswith("```")
        if fence or fenced or not line.strip() or (line.startswith("    ") and not paragraph):
            if paragraph:
                yield begin, paragraph
                paragraph = []
        else:
            begin = begin if paragraph else index
            paragraph.append(line)
        fenced ^= fence


def _pages(text: str) -> Iterator[tuple[int, list[str], bool]]:
    for index, paragraph in _without_code(text.splitlines()):
        yield index + 1, paragraph, False


def _doc_comments(text: str) -> Iterator[tuple[int, list[str], bool]]:
    marks = [re.match(r"\s*//([/!])(?!/) ?(.*)", line) for line in text.splitlines()]
    for kind, run in itertools.groupby(enumerate(marks), key=lambda row: row[1] and row[1][1]):
        if kind is None:
            continue
        block = [(number, mark[2]) for number, mark in run if mark]
        for offset, paragraph in _without_code([line for _, line in block]):
            yield block[offset][0] + 1, paragraph, offset == 0


def _documented(node: ast.AST) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """What may have a docstring: a module, its classes and functions, and those within them."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node
    # The statements within a statement; expressions have none.
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield from _documented(inner)


def _docstrings(text: str) -> Iterator[tuple[int, list[str], bool]]:
    for node in _documented(ast.parse(text)):
        if (doc := ast.get_docstring(node)) is not None:
            for offset, paragraph in _without_code(doc.splitlines()):
                yield node.body[0].lineno + offset, paragraph, offset == 0


# Copied from MXNet: names of files.
_TABLES = ("python/mxrt/contrib/text/_constants.py",)
_TESTS_OF_FILE = "#[cfg(test)]\nmod tests {"


def _texts(name: str, text: str) -> Iterator[tuple[int, list[str], bool]]:
    """Literals of several words in the sources of what users have: messages, help, descriptions."""
    if re.match(r"crates/[\w-]+/src/", name) and name.endswith(".rs"):
        found = _literals(text.partition(_TESTS_OF_FILE)[0])
    elif name.startswith("python/mxrt/") and name not in _TABLES and name.endswith(".py"):
        found = _constants(ast.parse(text))
    else:
        found = iter(())
    for line, literal in found:
        if len(literal.split()) > 2:
            yield line, literal.splitlines(), False


def _literals(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r'//[^\n]*|r(#+)".*?"\1|"(?:[^"\\]|\\.)*"', text, re.S):
        if not match[0].startswith("//"):
            # A line that continues has its own number; the space after it is no part of the text.
            yield text.count("\n", 0, match.start()) + 1, re.sub(r"\\\n", "\n", match[0])


def _constants(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String literals that are no docstrings. A value within an f-string counts as a word."""
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "_" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.lineno, node.value


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for finding in findings(name):
            print(f"{name}:{finding.line}: {finding.message}")
