"""The index of the unknown token, with which vocabularies of MXNet begin."""

__all__ = ["UNKNOWN_IDX"]

UNKNOWN_IDX = 0
