"""The common part of the kinds of stores, and stores by name."""

from __future__ import annotations

from typing import Any, ClassVar

from ..base import MXNetNotImplementedError, no_training

__all__ = ["KVStoreBase", "create"]


class KVStoreBase:
    """The common part of the kinds of stores: one worker, and no exchange of parameters."""

    OPTIMIZER: ClassVar[str] = "optimizer"
    kv_registry: ClassVar[dict[str, type[KVStoreBase]]] = {}

    @staticmethod
    def register(klass: type[KVStoreBase]) -> type[KVStoreBase]:
        """Registers a class under its lower-case name, so that ``create`` finds it."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store can do something: update parameters, for one. It cannot."""
        return False

    @property
    def type(self) -> str:
        """Name of the kind of store."""
        return type(self).__name__.lower()

    @property
    def rank(self) -> int:
        """Number of this worker: always 0."""
        return 0

    @property
    def num_workers(self) -> int:
        """How many workers there are: always 1."""
        return 1

    def init(self, key: Any, value: Any) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.init")

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.push")

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.pull")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.pushpull")

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.broadcast")

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.row_sparse_pull")

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.set_gradient_compression")

    def set_optimizer(self, optimizer: Any) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.set_optimizer")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.save_optimizer_states")

    def load_optimizer_states(self, fname: str) -> None:
        """Refused: mxrt does not train."""
        raise no_training("KVStore.load_optimizer_states")


def create(name: str = "local") -> KVStoreBase:
    """A store of one process, by name; one that spans machines is refused.

    Raises TypeError for what is not a string, MXNetNotImplementedError for distributed kinds,
    ValueError for unknown names.
    """
    if not isinstance(name, str):
        raise TypeError("name must be a string")
    kind = name.lower()
    if kind in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[kind]()
    if kind.startswith("dist") or kind in ("p3", "horovod", "byteps"):
        raise MXNetNotImplementedError(f"the key-value store '{name}' spans machines, which mxrt does not")
    if kind not in ("local", "device", "nccl", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device"):
        raise ValueError(f"unknown key-value store '{name}'; known: local, device")
    from .kvstore import KVStore

    return KVStore(name)
