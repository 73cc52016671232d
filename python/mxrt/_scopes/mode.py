"""Whether the code of a thread computes as in training, and whether it records."""

from __future__ import annotations

import threading
from types import TracebackType

__all__ = ["Mode", "ModeScope", "mode"]


class Mode(threading.local):
    """The state of a thread. A new thread records nothing and computes as in inference."""

    recording = False
    training = False


mode = Mode()


class ModeScope:
    """A ``with`` block that sets the state; None leaves a part of it unchanged."""

    def __init__(self, is_record: bool | None, train_mode: bool | None) -> None:
        self._enter_is_record = is_record
        self._enter_train_mode = train_mode
        self._prev_is_record: bool | None = None
        self._prev_train_mode: bool | None = None

    def __enter__(self) -> None:
        if self._enter_is_record is not None:
            self._prev_is_record, mode.recording = mode.recording, bool(self._enter_is_record)
        if self._enter_train_mode is not None:
            self._prev_train_mode, mode.training = mode.training, bool(self._enter_train_mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._prev_is_record is not None:
            mode.recording = self._prev_is_record
        if self._prev_train_mode is not None:
            mode.training = self._prev_train_mode
