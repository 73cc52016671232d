"""Images as arrays of shape (height, width, channels): all of ``mx.image`` but detection."""

from ..util import is_np_array as is_np_array
from ._augmenters import *  # noqa: F403
from ._files import imdecode as imdecode
from ._files import imread as imread
from ._iterator import *  # noqa: F403
from ._rotate import *  # noqa: F403
from ._sizes import *  # noqa: F403
from ._sizes import _get_interp_method as _get_interp_method  # other packages import it
