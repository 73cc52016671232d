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


# All that MXNet tells, in its order.
_MXNET = (
    *("CUDA", "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "CPU_SSE", "CPU_SSE2", "CPU_SSE3", "CPU_SSE4_1", "CPU_SSE4_2"),
    *("CPU_SSE4A", "CPU_AVX", "CPU_AVX2", "OPENMP", "SSE", "F16C", "JEMALLOC", "BLAS_OPEN", "BLAS_ATLAS", "BLAS_MKL"),
    *("BLAS_APPLE", "LAPACK", "MKLDNN", "OPENCV", "CAFFE", "PROFILER", "DIST_KVSTORE", "CXX14", "INT64_TENSOR_SIZE"),
    *("SIGNAL_HANDLER", "DEBUG", "TVM_OP"),
)
# What this build has whatever the CPU is. Most others name libraries, which it does without.
_PRESENT = {"PROFILER", "SIGNAL_HANDLER", "INT64_TENSOR_SIZE"}


def feature_list() -> list[Feature]:
    """The features that MXNet tells, then what else the CPU has, as ``CPU_`` and a name.

    MXNet tells which instructions of the CPU it was compiled for; mxrt, which this CPU has and
    mxrt therefore may use.
    """
    cpu = [f"CPU_{name.upper().replace('.', '_')}" for name in info()["cpu_features"]]
    # MXNet has two of them without the prefix.
    there = {*_PRESENT, *cpu, *(name for name in ("SSE", "F16C") if f"CPU_{name}" in cpu)}
    others = [Feature(name, True) for name in cpu if name not in _MXNET]
    return [*(Feature(name, name in there) for name in _MXNET), *others]


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
