"""What vocabularies of MXNet begin with."""

__all__ = ["UNKNOWN_IDX"]

UNKNOWN_IDX = 0
