"""Models as MXNet's older interface has them: ``mx.mod``."""

from .module import BaseModule, BucketingModule, Module

__all__ = ["BaseModule", "BucketingModule", "Module"]
