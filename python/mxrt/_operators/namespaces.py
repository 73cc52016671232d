"""The places of operators in ``mx.nd`` and ``mx.sym``, by their names.

This module imports nothing of mxrt, because scripts/gen_stubs.py runs it without an installed
package.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["PREFIXES", "SECTIONS", "candidates", "names"]

# Names of operators in a namespace start so: `_contrib_box_nms` is `mx.nd.contrib.box_nms`.
PREFIXES = {
    "contrib": "_contrib_",
    "linalg": "_linalg_",
    "random": "_random_",
    "image": "_image_",
    "sparse": "_sparse_",
}

# The namespaces: "" is `mx.nd` itself, "_internal" has the other operators whose names begin with
# an underscore.
SECTIONS = ("", "_internal", *PREFIXES)


def candidates(section: str, name: str) -> list[str]:
    """Names of operators that a name in a namespace can stand for, the first that exists being
    meant.
    """
    prefix = PREFIXES.get(section)
    if prefix is None:
        return [name] if name.startswith("_") == (section == "_internal") else []
    if section == "sparse":
        return [prefix + name, name]
    return [prefix + name]


def names(section: str, operators: Iterable[str]) -> list[str]:
    """The names in a namespace, sorted, given all names and aliases of operators."""
    prefix = PREFIXES.get(section)
    if prefix is not None:
        return sorted(n[len(prefix) :] for n in operators if n.startswith(prefix))
    internal = section == "_internal"
    return sorted(n for n in operators if n.startswith("_") == internal)
