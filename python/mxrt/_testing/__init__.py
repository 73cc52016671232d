"""Functions of :mod:`mxrt.test_utils`, by subject."""
