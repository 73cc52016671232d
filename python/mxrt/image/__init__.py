"""Images: reading, cutting, resizing and augmenting them, alone or with boxes: ``mx.image``."""

from . import detection as det  # noqa: F401
from . import detection as detection
from . import image as image
from .detection import *  # noqa: F403
from .image import *  # noqa: F403
