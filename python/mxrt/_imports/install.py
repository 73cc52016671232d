"""``import mxnet`` finds mxrt."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .. import _ALIASES
from . import load

__all__ = ["StandIn", "install"]


def _ours(name: str) -> str:
    """The name in mxrt of a module of MXNet."""
    parts = name.split(".")
    parts[0] = "mxrt"
    if len(parts) > 1:
        parts[1] = _ALIASES.get(parts[1], parts[1])
    return ".".join(parts)


# Modules of Python's library below a package that a program may have imported alone. MXNet brings
# them.
_BROUGHT = (
    *("email.utils", "html.entities", "http.cookiejar", "http.cookies", "multiprocessing.pool", "unittest.runner"),
    *("urllib.request", "xml.parsers.expat", "importlib.metadata", "importlib.resources", "importlib.util"),
    *(
        "email.headerregistry",
        "email.encoders",
        "email.iterators",
        "multiprocessing.queues",
        "multiprocessing.resource_sharer",
        "unittest",
    ),
)


class StandIn(ModuleType):
    """The module ``mxnet``: everything in it is mxrt's, except for its name and version."""

    def __init__(self) -> None:
        super().__init__("mxnet", "mxrt, standing in for MXNet.")
        ours = sys.modules["mxrt"]
        for name in _BROUGHT:
            importlib.import_module(name)
        self.__dict__.update(
            __version__=ours.__mxnet_version__, __file__=ours.__file__, __path__=ours.__path__, __package__="mxnet"
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules["mxrt"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(sys.modules["mxrt"], name, value)

    def __dir__(self) -> list[str]:
        return dir(sys.modules["mxrt"])


class _Finder:
    """Answers imports of ``mxnet`` and its modules with those of mxrt.

    It has no base class, as `importlib.abc` would cost 10 ms.
    """

    def __init__(self) -> None:
        self._specs: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "mxnet" and not fullname.startswith("mxnet."):
            return None
        try:
            load(_ours(fullname))
        except ModuleNotFoundError as error:
            if error.name != _ours(fullname):
                raise
            raise ModuleNotFoundError(
                f"No module named '{fullname}': it is not part of this build of mxrt, which stands in for mxnet",
                name=fullname,
            ) from None
        return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if spec.name == "mxnet":
            return StandIn()
        module = sys.modules[_ours(spec.name)]
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module is there already; it stays what it was under its own name."""
        found = module.__spec__
        if found is not None and found.name in self._specs:
            module.__spec__ = self._specs.pop(found.name)


def install() -> None:
    """Puts the finder in front, once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
