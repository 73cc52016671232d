"""Models as MXNet's older interface has them: ``mx.mod``."""

from .base_module import BaseModule
from .module import BucketingModule, Module

__all__ = ["BaseModule", "BucketingModule", "Module"]
