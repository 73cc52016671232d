"""Images with the boxes of their objects: ``mx.image.detection``, ``mx.image.det``."""

from ._det_augmenters import *  # noqa: F403
from ._det_iterator import *  # noqa: F403
