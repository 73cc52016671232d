"""The errors of mxrt, under the name that Python users look for; see :mod:`mxrt.base`."""

from .base import *  # noqa: F403
from .base import __all__ as __all__
