"""mxrt"""
from . import _mxrt, base, context
from .base import MXNetError
from .context import Context, cpu, gpu, current_context
from . import ndarray
from . import ndarray as nd
