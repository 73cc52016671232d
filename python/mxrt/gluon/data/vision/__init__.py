"""Data sets of images and what changes images: ``mx.gluon.data.vision``."""

from . import datasets, transforms
from .datasets import *  # noqa: F403

__all__ = ["transforms"]
__all__ += datasets.__all__
