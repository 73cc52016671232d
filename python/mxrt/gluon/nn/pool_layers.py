"""Pooling as layers."""

from __future__ import annotations

from typing import Any, ClassVar

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

    _axes: ClassVar[int]
    _pool_type: ClassVar[str]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: Any,
        ceil_mode: bool,
        layout: str | None,
        global_pool: bool = False,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ) -> None:
        axes = self._axes
        layout = _LAYOUTS[axes][0] if layout is None else layout
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
            "pool_type": self._pool_type,
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


class _MaxPool(_Pooling):
    _pool_type = "max"

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        layout: str | None = None,
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        """Makes the layer.

        Parameters
        ----------
        pool_size, strides, padding : a number, or one for every axis; strides are the pool size
            without them
        layout : order of the axes of the input and the output
        ceil_mode : whether a window that is not full at the end counts
        """
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class MaxPool1D(_MaxPool):
    """The largest element of windows over 1 axis, in the layout ``NCW`` or ``NWC``."""

    _axes = 1


class MaxPool2D(_MaxPool):
    """The largest element of windows over 2 axes, in the layout ``NCHW`` or ``NHWC``."""

    _axes = 2


class MaxPool3D(_MaxPool):
    """The largest element of windows over 3 axes, in the layout ``NCDHW`` or ``NDHWC``.

    The parameters are those of :class:`MaxPool2D`, but `ceil_mode` comes before `layout`.
    """

    _axes = 3

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **kwargs)


class _AvgPool(_Pooling):
    _pool_type = "avg"

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        layout: str | None = None,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        """Makes the layer.

        Parameters
        ----------
        pool_size, strides, padding : a number, or one for every axis; strides are the pool size
            without them
        ceil_mode : whether a window that is not full at the end counts
        layout : order of the axes of the input and the output
        count_include_pad : whether the padding counts in the mean
        """
        super().__init__(pool_size, strides, padding, ceil_mode, layout, False, count_include_pad, **kwargs)


class AvgPool1D(_AvgPool):
    """The mean of windows over 1 axis, in the layout ``NCW`` or ``NWC``.

    The parameters are those of :class:`AvgPool2D`, but `layout` comes before `ceil_mode`.
    """

    _axes = 1

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: Any = 0,
        layout: str | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, layout, count_include_pad, **kwargs)


class AvgPool2D(_AvgPool):
    """The mean of windows over 2 axes, in the layout ``NCHW`` or ``NHWC``."""

    _axes = 2


class AvgPool3D(_AvgPool):
    """The mean of windows over 3 axes, in the layout ``NCDHW`` or ``NDHWC``."""

    _axes = 3


class _GlobalPool(_Pooling):
    def __init__(self, layout: str | None = None, **kwargs: Any) -> None:
        """Makes the layer; `layout` is the order of the axes of the input and the output."""
        super().__init__(1, None, 0, True, layout, True, **kwargs)


class GlobalMaxPool1D(_GlobalPool):
    """The largest element of every channel: the other axis becomes 1; ``NCW`` or ``NWC``."""

    _axes, _pool_type = 1, "max"


class GlobalMaxPool2D(_GlobalPool):
    """The largest element of every channel: the 2 other axes become 1; ``NCHW`` or ``NHWC``."""

    _axes, _pool_type = 2, "max"


class GlobalMaxPool3D(_GlobalPool):
    """The largest element of every channel: the 3 other axes become 1; ``NCDHW`` or ``NDHWC``."""

    _axes, _pool_type = 3, "max"


class GlobalAvgPool1D(_GlobalPool):
    """The mean of every channel: the other axis becomes 1; ``NCW`` or ``NWC``."""

    _axes, _pool_type = 1, "avg"


class GlobalAvgPool2D(_GlobalPool):
    """The mean of every channel: the 2 other axes become 1; ``NCHW`` or ``NHWC``."""

    _axes, _pool_type = 2, "avg"


class GlobalAvgPool3D(_GlobalPool):
    """The mean of every channel: the 3 other axes become 1; ``NCDHW`` or ``NDHWC``."""

    _axes, _pool_type = 3, "avg"
