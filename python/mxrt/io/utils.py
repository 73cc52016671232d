"""What programs that define iterators import: how inputs become named arrays."""

from .io import _getdata_by_idx, _has_instance, _init_data

__all__ = ["_getdata_by_idx", "_has_instance", "_init_data"]
