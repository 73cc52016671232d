"""What this build of mxrt is made of: ``mx.runtime``."""

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


# What MXNet asks for and this build does not have, under MXNet's names.
_ABSENT = (
    *("CUDA", "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "OPENMP", "JEMALLOC", "BLAS_OPEN", "BLAS_ATLAS", "BLAS_MKL"),
    *("BLAS_APPLE", "LAPACK", "MKLDNN", "OPENCV", "CAFFE", "DIST_KVSTORE", "CXX14", "INT64_TENSOR_SIZE", "DEBUG"),
    "TVM_OP",
)


def feature_list() -> list[Feature]:
    """All features MXNet asks for, and the CPU's."""
    found = [Feature(name.upper().replace(".", "_"), True) for name in info()["cpu_features"]]
    return [
        *found,
        Feature("SIGNAL_HANDLER", True),
        Feature("PROFILER", True),
        *(Feature(name, False) for name in _ABSENT),
    ]


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
