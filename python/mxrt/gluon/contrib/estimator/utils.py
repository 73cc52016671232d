"""Names that MXNet has here."""

from .event_handler import checked_metrics as _check_metrics

__all__ = ["_check_metrics"]
