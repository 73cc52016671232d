"""Small things around blocks: ``mx.gluon.utils``."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .._scopes.np_mode import is_np_shape
from ..base import MXNetNotImplementedError, no_training
from ..context import Context
from ..ndarray import NDArray, slice_axis
from ._numpy import array_here, made_here

__all__ = [
    "check_sha1",
    "clip_global_norm",
    "download",
    "replace_file",
    "shape_is_known",
    "split_and_load",
    "split_data",
]


def shape_is_known(shape: tuple[int, ...] | None) -> bool:
    """Whether all extents are known: 0 stands for an unknown one, or -1 with NumPy's shapes."""
    if shape is None:
        return False
    unknown = -1 if is_np_shape() else 0
    return all(n > unknown for n in shape) and (len(shape) > 0 or unknown == -1)


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Cuts `data` into `num_slice` parts along `batch_axis`.

    ValueError with `even_split` if they cannot be of the same size; without it the first ones are
    larger by one.
    """
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(
            f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along axis {batch_axis}. Use "
            f"a batch size that's multiple of {num_slice} or set even_split=False to allow uneven partitioning of data."
        )
    each, larger = divmod(size, num_slice)
    ends = [each * (i + 1) + min(i + 1, larger) for i in range(num_slice)]
    cuts = list(zip([0, *ends[:-1]], ends, strict=True))
    if batch_axis == 0:
        return [data[begin:end] for begin, end in cuts]
    return [made_here(slice_axis(data, axis=batch_axis, begin=begin, end=end)) for begin, end in cuts]


def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Cuts `data`, an array or what becomes one, along `batch_axis` into as many parts as there are
    contexts in `ctx_list`, and copies each to its context. `even_split` is that of
    :func:`split_data`.
    """
    whole = made_here(data) if isinstance(data, NDArray) else array_here(data, ctx_list[0])
    if len(ctx_list) == 1:
        return [whole.as_in_context(ctx_list[0])]
    parts = split_data(whole, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays: list[NDArray], max_norm: float, check_isfinite: bool = True) -> NoReturn:
    """Refused: it is for gradients."""
    raise no_training("gluon.utils.clip_global_norm")


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """Whether the content of a file has this SHA-1, in hexadecimal digits."""
    import hashlib

    digest = hashlib.sha1()
    with open(filename, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == sha1_hash


def replace_file(src: str, dst: str) -> None:
    """Moves a file in one step over another."""
    os.replace(src, dst)


def download(
    url: str,
    path: str | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """The file that was to be downloaded, if it is there already: mxrt loads nothing from the
    network.

    Raises :class:`mxrt.base.MXNetNotImplementedError` that says where the file is expected.
    """
    name = url.rsplit("/", 1)[-1]
    target = os.path.expanduser(path) if path is not None else name
    if not target:
        raise AssertionError(f"there is no file name in '{url}'; set path")
    if os.path.isdir(target):
        target = os.path.join(target, name)
    if os.path.exists(target) and not overwrite and (not sha1_hash or check_sha1(target, sha1_hash)):
        return target
    state = "is to be overwritten" if overwrite else "is not there"
    if os.path.exists(target) and not overwrite:
        state = "has another SHA-1"
    raise MXNetNotImplementedError(
        f"mxrt downloads nothing: '{os.path.abspath(target)}' {state}. Load {url} by other means and put it there"
    )


def _get_repo_url() -> str:
    """The address of MXNet's data sets and models: ``MXNET_GLUON_REPO`` if set; ends in a slash."""
    url = os.environ.get("MXNET_GLUON_REPO", "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/")
    return url if url.endswith("/") else url + "/"


def _get_repo_file_url(namespace: str, filename: str) -> str:
    """The address of a file of MXNet's data sets and models."""
    return f"{_get_repo_url()}{namespace}/{filename}"


class Hooks(dict[int, Callable[..., Any]]):
    """Functions that a block calls, by number. Threads may add and remove some while others call
    the block, which an OrderedDict does not bear without the interpreter's lock.
    """


class HookHandle:
    """A handle that removes a hook: by ``detach``, or at the end of a ``with`` block."""

    def __init__(self, hooks: Hooks | None = None, hook: Callable[..., Any] | None = None) -> None:
        self._hooks_dict_ref: weakref.ref[Hooks] | None = None
        self._id = 0
        if hooks is not None and hook is not None:
            self.attach(hooks, hook)

    def attach(self, hooks: Hooks, hook: Callable[..., Any]) -> None:
        """Puts a hook into a dictionary of hooks."""
        if self._hooks_dict_ref is not None:
            raise AssertionError("The same handle cannot be attached twice.")
        self._id = id(hook)
        hooks[self._id] = hook
        self._hooks_dict_ref = weakref.ref(hooks)

    def detach(self) -> None:
        """Takes the hook away, once."""
        hooks = self._hooks_dict_ref() if self._hooks_dict_ref is not None else None
        if hooks is not None:
            hooks.pop(self._id, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.detach()


def _indent(text: str, spaces: int) -> str:
    """Puts spaces in front of all lines but the first."""
    return text.replace("\n", "\n" + " " * spaces)


def _brief_print_list(items: Any, limit: int = 7) -> str:
    """Some of the items as text."""
    listed = list(items)
    if len(listed) > limit:
        return (
            f"{_brief_print_list(listed[: limit // 2], limit)}, ..., {_brief_print_list(listed[-limit // 2 :], limit)}"
        )
    return ", ".join(f"'{item}'" for item in listed)
