"""The features of this build of mxrt: ``mx.runtime``."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from . import _mxrt

__all__ = ["Feature", "Features", "feature_list", "info"]


class Feature(NamedTuple):
    """A feature and whether it is there."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def feature_list() -> list[Feature]:
    """The features that MXNet tells, then what else the CPU has, as ``CPU_`` and a name.

    MXNet tells which instructions of the CPU it was compiled for; mxrt, which this CPU has and
    mxrt therefore may use.
    """
    of_mxnet = _mxrt.features()
    names = {name for name, _ in of_mxnet}
    cpu = [f"CPU_{name.upper().replace('.', '_')}" for name in info()["cpu_features"]]
    return [Feature(*row) for row in of_mxnet] + [Feature(name, True) for name in cpu if name not in names]


class Features(dict[str, Feature]):
    """Features by name. There is one instance, since they do not change."""

    _instance: ClassVar[Features | None] = None

    def __new__(cls) -> Features:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is enabled. Raises RuntimeError for an unknown name."""
        name = feature_name.upper()
        if name not in self:
            raise RuntimeError(f"Feature '{name}' is unknown, known features are: {list(self.keys())}")
        return self[name].enabled


def info() -> dict[str, Any]:
    """Version, kind of engine, number of cores, the CPU's features, and more."""
    found: dict[str, Any] = _mxrt.info()
    return found
