"""Facts about GPUs and CUDA's libraries."""

from __future__ import annotations

from .. import _mxrt

__all__ = ["gpu_rows", "kernel_rows", "library_rows"]


def gpu_rows() -> list[tuple[str, str]]:
    """The CUDA driver and its GPUs, or why there are none. Opens the driver, but uses no GPU."""
    version, gpus, reason = _mxrt.gpu_status()
    served = "none" if version is None else f"serves CUDA {version // 1000}.{version % 1000 // 10}"
    rows = [("CUDA driver", served)]
    for number, (name, (major, minor), memory) in enumerate(gpus):
        rows.append((f"gpu({number})", f"{name}, compute capability {major}.{minor}, {memory / 2**30:.1f} GiB"))
    if reason is not None:
        rows.append(("GPUs", f"none: {reason}; docs/gpu.md, Diagnosis, says what to do"))
    return rows


#: What to do about a library that is absent.
_REMEDIES = {
    "NVRTC": "pip install 'mxrt[cuda13]', or cuda12",
    "cuBLASLt": "needed only if MXRT_GPU_LIBRARIES names it: pip install nvidia-cublas",
    "cuDNN": "needed only if MXRT_GPU_LIBRARIES names it: pip install nvidia-cudnn-cu13",
}


def library_rows() -> list[tuple[str, str]]:
    """The optional libraries with path and version, or why one is absent, and whether the setting
    MXRT_GPU_LIBRARIES names them. Opens them.
    """
    rows = []
    for name, path, version, reason, chosen in _mxrt.gpu_libraries():
        if path is None:
            rows.append((name, f"absent: {reason}; {_REMEDIES[name]}"))
        else:
            used = {True: ", used (MXRT_GPU_LIBRARIES)", False: ", not used", None: ""}[chosen]
            rows.append((name, f"{version or 'of unknown version'}, {path}{used}"))
    return rows


def kernel_rows() -> list[tuple[str, str]]:
    """The kernels of the GPUs, for each compute capability; compiles one to find out."""
    rows = []
    for major, minor in sorted({capability for _, capability, _ in _mxrt.gpu_status()[1]}):
        kernels, chains = _mxrt.gpu_kernels((major, minor))
        rows.append((f"kernels {major}.{minor}", "yes" if kernels is None else f"none: {kernels}"))
        compiled = "compiled" if chains is None else f"not compiled, but run as data: {chains}"
        rows.append((f"chains {major}.{minor}", compiled))
    return rows
