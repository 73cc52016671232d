"""Key-value stores can be named and created; what would exchange parameters or gradients is
refused.
"""

from .base import KVStoreBase, create
from .kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "create"]
