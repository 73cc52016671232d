"""Ranges of the values of a float32 model, from data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ndarray import array
from ..ndarray.contrib import calibrate_entropy

__all__ = ["combine_histogram"]

# Bins of a histogram; odd, so that one has zero in its middle.
BINS = 8001


def _numbers(name: str | bytes, array: Any) -> tuple[str, Any]:
    """The name as text and the values, which must be finite."""
    name = name.decode() if isinstance(name, bytes) else name
    values = array if isinstance(array, np.ndarray) else array.asnumpy()
    if not values.size:
        raise ValueError(
            f"calibration: '{name}' is empty (shape {values.shape}); give batches with at least one sample"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"calibration: '{name}' holds NaN or infinity, so it has no range; check the data and the parameters"
        )
    return name, values


class LayerOutputMinMaxCollector:
    """Keeps the least and the largest value of each layer's output: calib_mode 'naive'."""

    def __init__(self, quantized_dtype: str, include_layer: Any = None, logger: Any = None):
        self.min_max_dict: dict[str, tuple[float, float]] = {}
        self.quantized_dtype, self.include_layer, self.logger = quantized_dtype, include_layer, logger

    def collect(self, name: str | bytes, arr: Any) -> None:
        """Takes one array of a layer."""
        if (
            self.include_layer is not None
            and (name.decode() if isinstance(name, bytes) else name) not in self.include_layer
        ):
            return
        name, values = _numbers(name, arr)
        low, high = float(values.min()), float(values.max())
        before = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = (min(before[0], low), max(before[1], high))
        if self.logger:
            self.logger.debug(f"layer {name}: min_range={low}, max_range={high}")


class LayerHistogramCollector:
    """Keeps a histogram of each layer's output: calib_mode 'entropy'."""

    def __init__(self, num_bins: int = BINS, include_layer: Any = None, logger: Any = None):
        self.hist_dict: dict[str, Any] = {}
        self.num_bins, self.include_layer, self.logger = num_bins, include_layer, logger

    def collect(self, name: str | bytes, arr: Any) -> None:
        """Takes one array of a layer."""
        if (
            self.include_layer is not None
            and (name.decode() if isinstance(name, bytes) else name) not in self.include_layer
        ):
            return
        name, values = _numbers(name, arr)
        low, high = values.min(), values.max()
        largest = max(abs(low), abs(high))
        if name in self.hist_dict:
            self.hist_dict[name] = combine_histogram(self.hist_dict[name], values, low, high, largest)
        else:
            counts, edges = _histogram(values, self.num_bins, largest)
            self.hist_dict[name] = (counts, edges, low, high, largest)


# Values that are counted at once.
_BLOCK = 1 << 16


def _histogram(values: Any, bins: int, end: Any) -> tuple[Any, Any]:
    """The counts of values in bins from `-end` to `end`, and the ends of the bins.

    What `numpy.histogram` gives before NumPy 2, where it finds ends of bins in double precision:
    with float32 ones a value may be in the next bin, and a layer get another range.
    """
    edges = np.linspace(-np.float64(end), np.float64(end), bins + 1)
    if edges[0] == edges[-1]:
        # Of zeros alone.
        edges = np.linspace(-0.5, 0.5, bins + 1)
    edges = edges.astype(values.dtype if values.dtype.kind == "f" else np.float64)
    per_bin = bins / (np.float64(edges[-1]) - np.float64(edges[0]))
    counts = np.zeros(bins, np.intp)
    values = values.reshape(-1)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK].astype(edges.dtype)
        block = block[(block >= edges[0]) & (block <= edges[-1])]
        # Within one of the bin, which the ends of the bins decide.
        place = np.clip(((block - edges[0]) * edges.dtype.type(per_bin)).astype(np.intp), 0, bins - 1)
        place -= block < edges[place]
        place += (block >= edges[place + 1]) & (place != bins - 1)
        counts += np.bincount(place, minlength=bins)
    return counts, edges


def combine_histogram(old_hist: Any, arr: Any, new_min: Any, new_max: Any, new_th: Any) -> tuple[Any, ...]:
    """Adds values to a histogram (counts, edges, least, largest, end), whose bins keep their width.

    `new_th` is the largest magnitude of `arr`. Bins are added on both sides where it lies outside.
    """
    counts, edges, low, high, end = old_hist
    low, high = min(low, new_min), max(high, new_max)
    if new_th <= end:
        more, _ = _histogram(arr, len(counts), end)
        return counts + more, edges, low, high, end
    width = 2 * np.float64(end) / len(counts)
    if width == 0.0:
        # All values were zero so far: they are in the middle of any histogram.
        more, edges = _histogram(arr, len(counts), new_th)
        more[len(counts) // 2] += counts.sum()
        return more, edges, low, high, new_th
    added = int((new_th - end) // width + 1)
    end = added * width + end
    more, edges = _histogram(arr, len(counts) + 2 * added, end)
    more[added : added + len(counts)] += counts
    return more, edges, low, high, end


def smooth(p: Any, eps: float = 0.0001) -> Any:
    """Takes a little from the bins of a histogram that have something for those that have nothing.

    Raises ValueError where nothing is in any bin, or too little to take `eps` for each empty one.
    """
    zeros = p == 0
    empty, full = int(zeros.sum()), int((~zeros).sum())
    if not full:
        raise ValueError("the histogram is empty: no bin holds anything")
    smoothed = np.where(zeros, eps, p - eps * empty / full)
    if eps * empty / full >= 1.0 or (smoothed <= 0).any():
        raise ValueError(f"the histogram has {empty} empty bins of {empty + full}: too many to smooth it")
    return smoothed


def best_threshold(counts: Any, edges: Any, quantized_bins: int = 255) -> tuple[float, float]:
    """The largest magnitude that is not clipped, so that least is lost, and the loss: the
    Kullback-Leibler divergence.
    """
    found = calibrate_entropy(
        array(counts, dtype="float32"), array(edges, dtype="float32"), num_quantized_bins=quantized_bins
    )
    threshold, loss = (float(one.asscalar()) for one in found)
    if loss >= float(np.finfo(np.float32).max):
        return float(edges[-1]), float("inf")  # no range can be compared, so nothing is clipped
    return threshold, loss


def best_threshold_of(
    hist_data: tuple[Any, ...], quantized_dtype: str, num_quantized_bins: int = 255
) -> tuple[Any, Any, float, float]:
    """The least and the largest value of a histogram, the magnitude beyond which values are
    clipped, and the loss. Unsigned integers have twice the steps on one side.
    """
    counts, edges, low, high, _ = hist_data
    unsigned = low >= 0 and quantized_dtype in ("auto", "uint8")
    bins = 2 * num_quantized_bins + 1 if unsigned else num_quantized_bins
    return (low, high, *best_threshold(np.asarray(counts), np.asarray(edges), bins))


def thresholds(
    hist_dict: dict[str, Any], quantized_dtype: str, num_quantized_bins: int = 255, logger: Any = None
) -> dict[str, tuple[float, float]]:
    """Ranges for all histograms."""
    found = {}
    for name, histogram in hist_dict.items():
        if histogram[2] == histogram[3] == 0:
            found[name] = (0.0, 0.0)
            continue
        low, high, end, loss = best_threshold_of(histogram, quantized_dtype, num_quantized_bins)
        # A layer after a relu is unsigned in any case: its range must not reach below zero.
        found[name] = (0.0 if low >= 0 else -end, end)
        if logger:
            logger.debug(f"layer={name}, min_val={low}, max_val={high}, th={end}, divergence={loss}")
    return found
