"""Arrays shared with other libraries: DLPack."""

from __future__ import annotations

from typing import Any

from .. import _mxrt

__all__ = ["Exchange"]

_CPU = (1, 0)


class Exchange:
    """The part of DLPack's protocol that an array has: ``numpy.from_dlpack(x)``,
    ``torch.from_dlpack(x)`` share its memory.
    """

    __slots__ = ()

    def __dlpack__(
        self,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule with the memory of the array, which stays until the consumer lets it go.

        For an array on the host this waits until the value is there and has no reader, and there is
        no `stream`. For one on a device the consumer's stream waits instead. What operators do with
        the array later is not ordered with what the consumer does.
        """
        source, copied = self._for_consumer(dl_device, copy)
        return _mxrt.export_dlpack(source, stream, max_version, True, copied)

    def _for_consumer(self, device: Any, copy: bool | None) -> tuple[Any, bool]:
        own = self.__dlpack_device__()
        if device is None or tuple(device) == own:
            return (self.copy(), True) if copy else (self, False)  # type: ignore[attr-defined]
        if tuple(device) != _CPU:
            raise BufferError(f"__dlpack__: an array of DLPack device {own} cannot be given away on {tuple(device)}")
        if copy is False:
            raise BufferError(f"__dlpack__: an array of DLPack device {own} reaches the host only as a copy")
        from ..context import cpu

        return self.copyto(cpu()), True  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's numbers of the device: ``(1, 0)`` is the host."""
        return _mxrt.dlpack_device(self)  # type: ignore[arg-type]

    def to_dlpack_for_read(self, max_version: tuple[int, int] | None = None) -> Any:
        """A capsule for reading. Waits for the value."""
        return _mxrt.export_dlpack(self, None, max_version, False, False)  # type: ignore[arg-type]

    def to_dlpack_for_write(self) -> Any:
        """A capsule for writing. Waits for the value, and until it has no reader."""
        return _mxrt.export_dlpack(self, None, None, True, False)  # type: ignore[arg-type]
