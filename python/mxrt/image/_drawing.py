"""Boxes drawn into images, and windows that show these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["draw_boxes", "show"]


def draw_boxes(
    image: Any, boxes: Any, color: Sequence[int] | None, thickness: int, names: dict[int, str] | None
) -> None:
    """Draws boxes (class, left, top, right, bottom from 0 to 1) into an image of uint8."""
    height, width, _ = image.shape
    for kind, *edges in boxes[:, :5]:
        left, top, right, bottom = (int(edge * size) for edge, size in zip(edges, (width, height) * 2, strict=True))
        if left < 0:
            continue
        _frame(image, (left, top, right, bottom), np.random.rand(3) * 255 if color is None else color, thickness)
        if names is not None and int(kind) in names:
            font = _opencv().FONT_HERSHEY_SIMPLEX
            text = str(names[int(kind)])
            high = _opencv().getTextSize(text, font, 0.5, 2)[0][1]
            _opencv().putText(image, text, (left + 5, top + high + 5), font, 0.5, (255, 255, 255), 2)


def _frame(image: Any, edges: tuple[int, int, int, int], color: Any, thickness: int) -> None:
    """The edges of a box, `thickness` pixels wide around each edge's pixel."""
    left, top, right, bottom = edges
    before = thickness // 2
    after = thickness - before

    def span(first: int, last: int) -> slice:
        return slice(max(0, first - before), max(0, last + after))

    for y in (top, bottom):
        image[span(y, y), span(left, right)] = color
    for x in (left, right):
        image[span(top, bottom), span(x, x)] = color


def show(image: Any, window: str, milliseconds: int) -> None:
    """Shows an image, blue first, in a window."""
    _opencv().imshow(window, image)
    _opencv().waitKey(milliseconds)


def _opencv() -> Any:
    try:
        import cv2  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise ImportError(
            "draw_next: windows (waitKey) and names of classes (id2labels) need OpenCV: pip install opencv-python"
        ) from None
    return cv2
