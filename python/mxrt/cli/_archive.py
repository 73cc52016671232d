"""Archives of models: `.zip`, `.mar`, `.tar`, `.tar.gz`. Nothing that an archive says is trusted:
names stay in the folder, only files and folders are made, and what is too large is refused.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from .._temporary import folder_for
from ._errors import ModelError

__all__ = ["MOST_BYTES", "MOST_ENTRIES", "is_archive", "is_zip", "unpack"]

MOST_ENTRIES = 10_000
"""An archive has at most so many files and folders."""
MOST_BYTES = 4 << 30
"""An archive unpacks to at most so many bytes."""
_PIECE = 1 << 20
# A tar file has nothing but the content of files that is read in larger pieces than this.
_LARGEST_HEADER = 1 << 16


def is_zip(path: Path) -> bool:
    """Whether the file begins as a zip archive does."""
    return _head(path, 4) in (b"PK\x03\x04", b"PK\x05\x06")


def is_archive(path: Path) -> bool:
    """Whether the file is an archive, by its content."""
    head = _head(path, 265)
    return is_zip(path) or head.startswith(b"\x1f\x8b") or head[257:262] == b"ustar"


def _head(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def unpack(path: Path, most_bytes: int | None = None) -> Path:
    """Unpacks an archive into a temporary folder, which is removed when the command ends.

    ModelError if it is damaged, has names that leave the folder, links, or too much of anything.
    """
    room = _Room(path, folder_for(path), MOST_BYTES if most_bytes is None else most_bytes)
    try:
        if is_zip(path):
            _zip(path, room)
        else:
            _tar(path, room)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, ValueError) as error:
        raise ModelError(
            f"'{path}' is a damaged archive ({str(error) or type(error).__name__}): copy or download it again"
        ) from None
    except (NotImplementedError, RuntimeError) as error:
        raise ModelError(f"'{path}' cannot be unpacked ({error}): unpack it yourself and name the folder") from None
    return room.folder


class _Room:
    """The folder that files are made in, and how much of them is allowed."""

    def __init__(self, archive: Path, folder: Path, most: int) -> None:
        self.archive, self.folder = archive, folder
        self.most = self.left = most
        self.entries = 0

    def refuse(self, what: str) -> ModelError:
        return ModelError(f"'{self.archive}' {what}: it is not unpacked; ask whoever made it for a plain archive")

    def no_room(self, error: OSError) -> ModelError:
        """The error for a folder of temporary files that cannot be written. It names that folder:
        its own one has the name of the archive in messages.
        """
        return ModelError(
            f"'{self.archive}' cannot be unpacked into '{self.folder.parent}': {error.strerror}; free some space "
            "there, or name another folder by TMPDIR"
        )

    def place(self, name: str) -> Path:
        """The place of an entry."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise self.refuse(f"has more than {MOST_ENTRIES} entries")
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\\" in name or "\0" in name:
            raise self.refuse(f"has an entry {name[:200]!r}, which leaves the folder of the archive")
        return self.folder.joinpath(*parts.parts)

    def make_folder(self, name: str) -> None:
        place = self.place(name)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise self.refuse(f"has {name[:200]!r} as a file and as a folder") from None
        except OSError as error:
            raise self.no_room(error) from None

    def make_file(self, name: str, source: IO[bytes]) -> None:
        place = self.place(name)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                while piece := source.read(_PIECE):
                    self.left -= len(piece)
                    if self.left < 0:
                        raise self.refuse(f"unpacks to more than {self.most} bytes")
                    file.write(piece)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise self.refuse(f"has {name[:200]!r} twice") from None
        except gzip.BadGzipFile:
            raise
        except OSError as error:
            raise self.no_room(error) from None


def _zip(path: Path, room: _Room) -> None:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise room.refuse(f"has {entry.filename[:200]!r}, which is no plain file")
            if entry.is_dir():
                room.make_folder(entry.filename)
                continue
            with archive.open(entry) as source:
                room.make_file(entry.filename, source)


def _tar(path: Path, room: _Room) -> None:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        source: IO[bytes] = gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[assignment]
        with tarfile.TarFile(fileobj=_Guarded(source, room)) as archive:
            for entry in _entries(archive, room):
                if entry.isdir():
                    room.make_folder(entry.name)
                elif entry.isreg() and not entry.issparse():
                    content = archive.extractfile(entry)
                    assert content is not None
                    room.make_file(entry.name, content)
                else:
                    raise room.refuse(f"has {entry.name[:200]!r}, which is no plain file")


def _entries(archive: tarfile.TarFile, room: _Room) -> Iterator[tarfile.TarInfo]:
    while (entry := archive.next()) is not None:
        archive.members.clear()  # type: ignore[attr-defined]
        yield entry


class _Guarded:
    """A tar file that is read forwards, in small pieces, and not beyond what it may unpack to.

    The library reads headers that say their own length in one piece, and goes where they say.
    """

    def __init__(self, source: IO[bytes], room: _Room) -> None:
        self._source, self._room = source, room
        self._most = room.most + MOST_ENTRIES * _LARGEST_HEADER
        self.mode = "rb"

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _PIECE:
            raise self._room.refuse("has a header that is too long")
        return self._source.read(size)

    def tell(self) -> int:
        return self._source.tell()

    def seek(self, target: int, whence: int = 0) -> int:
        now = self._source.tell()
        if whence != 0 or target < now:
            raise self._room.refuse("has an entry of a negative size")
        if target > self._most:
            raise self._room.refuse(f"unpacks to more than {self._room.most} bytes")
        return self._source.seek(target)

    def close(self) -> None:
        self._source.close()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
