"""Helpers for programs that define iterators: conversion of inputs to named arrays."""

from ._named_arrays import _getdata_by_idx, _has_instance, _init_data

__all__ = ["_getdata_by_idx", "_has_instance", "_init_data"]
