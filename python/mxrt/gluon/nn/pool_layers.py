"""Pooling as layers."""

from __future__ import annotations

from typing import Any

from ...base import numeric_types
from ..hybrid_block import HybridBlock
from .conv_layers import per_axis

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class _Pooling(HybridBlock):
    """Pooling over any number of axes."""

    def __init__(
        self,
        axes: int,
        pool_size: Any,
        strides: Any,
        padding: Any,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if layout not in _LAYOUTS[axes]:
            names = " and ".join(_LAYOUTS[axes])
            raise AssertionError(f"Only {names} layouts are valid for {axes}D Pooling, got {layout}")
        super().__init__(**kwargs)
        kernel = per_axis(pool_size, axes, "pool_size")
        strides = kernel if strides is None else strides
        self._kwargs: dict[str, Any] = {
            "kernel": kernel,
            "stride": (strides,) * axes if isinstance(strides, numeric_types) else tuple(strides),
            "pad": (padding,) * axes if isinstance(padding, numeric_types) else tuple(padding),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Shape of x with the extents that pool size, stride and padding make."""
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        has = self._kwargs
        return (
            f"{type(self).__name__}(size={has['kernel']}, stride={has['stride']}, padding={has['pad']}, "
            f"ceil_mode={has['pooling_convention'] == 'full'}, global_pool={has['global_pool']}, "
            f"pool_type={has['pool_type']}, layout={has['layout']})"
        )


class MaxPool1D(_Pooling):
    """The largest element of windows over 1 axis.

    Parameters
    ----------
    pool_size, strides, padding : a number, or one for every axis; strides are the pool size without
        them
    layout : ``NCW`` or ``NWC``
    ceil_mode : whether a window that is not full at the end counts
    """

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool2D(_Pooling):
    """The largest element of windows over 2 axes.

    Parameters
    ----------
    pool_size, strides, padding : a number, or one for every axis; strides are the pool size without
        them
    layout : ``NCHW`` or ``NHWC``
    ceil_mode : whether a window that is not full at the end counts
    """

    def __init__(
        self,
        pool_size: Any = (2, 2),
        strides: Any = None,
        padding: Any = 0,
        layout: str = "NCHW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool3D(_Pooling):
    """The largest element of windows over 3 axes.

    Parameters
    ----------
    pool_size, strides, padding : a number, or one for every axis; strides are the pool size without
        them
    layout : ``NCDHW`` or ``NDHWC``
    ceil_mode : whether a window that is not full at the end counts
    """

    def __init__(
        self,
        pool_size: Any = (2, 2, 2),
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        **kwargs: Any,
    ) -> None:
        super().__init__(3, pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class AvgPool1D(_Pooling):
    """The mean of windows over 1 axis.

    Parameters
    ----------
    pool_size, strides, padding : a number, or one for every axis; strides are the pool size without
        them
    layout : ``NCW`` or ``NWC``
    ceil_mode : whether a window that is not full at the end counts
    count_include_pad : whether the padding counts in the mean
    """

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool2D(_Pooling):
    """The mean of windows over 2 axes.

    Parameters
    ----------
    pool_size, strides, padding : a number, or one for every axis; strides are the pool size without
        them
    layout : ``NCHW`` or ``NHWC``
    ceil_mode : whether a window that is not full at the end counts
    count_include_pad : whether the padding counts in the mean
    """

    def __init__(
        self,
        pool_size: Any = (2, 2),
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool3D(_Pooling):
    """The mean of windows over 3 axes.

    Parameters
    ----------
    pool_size, strides, padding : a number, or one for every axis; strides are the pool size without
        them
    layout : ``NCDHW`` or ``NDHWC``
    ceil_mode : whether a window that is not full at the end counts
    count_include_pad : whether the padding counts in the mean
    """

    def __init__(
        self,
        pool_size: Any = (2, 2, 2),
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(3, pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class GlobalMaxPool1D(_Pooling):
    """The largest element of every channel: the 1 other axis becomes 1."""

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, 1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool2D(_Pooling):
    """The largest element of every channel: the 2 other axes become 1."""

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(2, 1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool3D(_Pooling):
    """The largest element of every channel: the 3 other axes become 1."""

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(3, 1, None, 0, True, True, "max", layout, **kwargs)


class GlobalAvgPool1D(_Pooling):
    """The mean of every channel: the 1 other axis becomes 1."""

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, 1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool2D(_Pooling):
    """The mean of every channel: the 2 other axes become 1."""

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(2, 1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool3D(_Pooling):
    """The mean of every channel: the 3 other axes become 1."""

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(3, 1, None, 0, True, True, "avg", layout, **kwargs)
