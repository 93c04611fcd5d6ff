"""A file as it is open: what is asked about a source, and what is read of it, concern one descriptor.

A path says where a file was at one moment. Who it belongs to, what type it has and what stands in it are asked of the
open descriptor, so a link that moves meanwhile changes nothing, and a file that is written to meanwhile is refused.
Only files that a file system keeps are tables: devices, pipes, the pseudo-files of the system, files that no folder
names any more and the spill files of an engine are not.

Where an engine puts what does not fit in memory: a folder of its own, which nobody else may enter.

The folders of all processes of one user stand in `jostle-spill-UID` in the system's temporary folder; each has a file
`lock` that its process keeps locked while it lives, and what a dead process left behind is removed when an engine
starts. The rows stand there in plain, but no program reads these files as a table.

Open files that are read as one table, and how: what a program's `table(…)` names.

Every file is opened once. A set of files is recognised by its parts, so that no file has two budgets by standing in
two lists; a file and its compressed copy beside it (`people.csv`, `people.csv.gz`) count as one. How many files there
are and what they are called is public, as are their headers and types; nothing else of them is asked here.
"""

from __future__ import annotations

import fcntl
import glob
import io
import os
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse


class SpillFolder:
    """A folder to spill into. `close` removes it; after a process that could not, the next engine does."""

    def __init__(self) -> None:
        above = _above()
        try:
            above.mkdir(mode=0o700, exist_ok=True)
            status = above.lstat()
        except OSError:
            raise _unusable(above) from None
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise _unusable(above)
        try:
            with _alone(above):
                _clear(above)
                self.path = tempfile.mkdtemp(dir=above)
                self._lock = _locked(Path(self.path) / "lock")
        except OSError:
            raise _unusable(above) from None

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def holds(path: str) -> bool:
    """Whether a real path leads to what some process has spilled."""
    return Path(path).is_relative_to(os.path.realpath(_above()))


def _above() -> Path:
    return Path(tempfile.gettempdir()) / f"jostle-spill-{os.geteuid()}"


@contextmanager
def _alone(above: Path) -> Iterator[None]:
    """No other process makes or removes folders meanwhile."""
    descriptor = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """The descriptor of a lock, which lives with this process and its children; None where another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _clear(above: Path) -> None:
    """Removes the folders that nobody holds."""
    for left in above.iterdir():
        with suppress(OSError):
            lock = _locked(left / "lock")
            if lock is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)


def _unusable(above: Path) -> Refusal:
    help = "make it yours alone (`chmod 700`), or set TMPDIR to another folder"
    return refuse("DataError", f"the folder `{above}`, for what does not fit in memory, cannot be used", help=help)


# File systems without a device of their own that keep what is written to them; the others are the system's.
_KEEPING = frozenset({
    "tmpfs", "ramfs", "overlay", "aufs", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse", "ceph", "zfs",
    "btrfs", "ecryptfs", "lustre", "beegfs", "gpfs", "afs", "vboxsf", "glusterfs", "orangefs", "ocfs2", "ubifs",
})  # fmt: skip


class OpenFile(Struct, frozen=True, eq=False, weakref=True):
    """A regular file that is open for reading until this object goes. `path` is what messages call it, `real` where it
    was when it was opened, without links."""

    descriptor: int
    path: str
    real: str
    status: os.stat_result

    @property
    def identity(self) -> tuple[str, int, int]:
        """Equal for two names of one file, hard links included."""
        return ("file", self.status.st_dev, self.status.st_ino)

    @property
    def name(self) -> str:
        """A path that opens this very file again in this process, wherever its own path leads by now."""
        return f"{_descriptors()}/{self.descriptor}"

    def changed(self) -> bool:
        """Whether somebody wrote to the file, or moved or removed it, since it was opened."""
        return _stamp(os.fstat(self.descriptor)) != _stamp(self.status)

    def check(self) -> None:
        """Refuses a file that changed since it was opened."""
        if self.changed():
            message = f"`{self.path}` changed while this program ran"
            raise refuse("DataError", message, help="run it again when nobody writes to the file")

    def reader(self, tail: bytes = b"", buffer: int = 1 << 20) -> BinaryIO:
        """The bytes from the start on, the last of them in place of the file's own; several readers do not disturb
        each other, in forked processes neither."""
        return io.BufferedReader(_Reader(self, tail), buffer)


class _Reader(io.RawIOBase):
    """Reads at positions of its own, since the descriptor's is shared with forked processes, as much as the file had
    when it was opened."""

    def __init__(self, file: OpenFile, tail: bytes) -> None:
        self._file, self._at, self._tail = file, 0, tail
        self._size = file.status.st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        start = self._size - len(self._tail)
        many = min(len(buffer), max(0, self._size - self._at))
        if self._tail and self._at + many > start:
            many = max(0, start - self._at)
        data = (
            os.pread(self._file.descriptor, many, self._at) if many else self._tail[self._at - start :][: len(buffer)]
        )
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_file(path: str | os.PathLike[str]) -> OpenFile:
    """Opens a file to be asked about and read. A `DataError` where there is none, or something else than a file."""
    label = str(path)
    try:
        _check_kind(os.stat(path).st_mode, label)  # opening a device may already do something
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        help = "paths in a program start at its folder"
        if "://" in label:
            help = 'download it first, and name the file: `table("people.csv")`'
        elif "\\" in label:
            help = f"write `/` between folders: `{label.replace(chr(92), '/')}`"
        raise refuse("DataError", f"there is no file `{label}`", help=help) from None
    except (OSError, ValueError) as error:
        raise _unreadable(label, error) from None
    try:
        file = OpenFile(descriptor, label, _real(descriptor, label), os.fstat(descriptor))
        _check_kind(file.status.st_mode, label)
        if not file.status.st_nlink or not _is_kept(descriptor) or holds(file.real):
            message = f"`{label}` is no file of a disk, but a part of the running system"
            raise refuse("DataError", message, help="a table is a file that stays as it is")
    except (OSError, Refusal) as error:
        os.close(descriptor)
        raise (_unreadable(label, error) if isinstance(error, OSError) else error) from None
    weakref.finalize(file, os.close, descriptor)
    return file


def _check_kind(mode: int, label: str) -> None:
    if stat.S_ISDIR(mode):
        help = 'name its files: `table("folder/*.csv")`'
        raise refuse("DataError", f"`{label}` is a folder, not a file", help=help)
    if not stat.S_ISREG(mode):
        raise refuse("DataError", f"`{label}` is a device or a pipe, not a file")


def _unreadable(label: str, error: Exception) -> Refusal:
    reason = (error.strerror or "") if isinstance(error, OSError) else "its name is not a path"
    return refuse("DataError", f"`{label}` cannot be read: {reason}")


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _descriptors() -> str:
    return "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"


def _real(descriptor: int, path: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return os.path.realpath(path)


def _is_kept(descriptor: int) -> bool:
    """Whether an open file's file system keeps files: it has a device of its own, or is known to. Asked of Linux,
    where the files of `/proc` and `/sys` say that they are regular; elsewhere those are no files."""
    if sys.platform != "linux":
        return True
    if os.major(os.fstat(descriptor).st_dev):
        return True
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii").splitlines()
    mount = next((line.split()[1] for line in lines if line.startswith("mnt_id:")), "")
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        here, _, more = line.partition(" - ")
        if here.split()[0] == mount:
            return more.split()[0].partition(".")[0] in _KEEPING
    return False


ENDINGS = (".gz", ".zst")
"""How the names of compressed files end."""
_MOST = 1000  # files of a table; each is an open descriptor


class Reading(Struct, frozen=True):
    """What a program says of how files are read; what it leaves out, a file's header and type say.

    `part` is a table of a database, `sheet` the name of a sheet of a workbook or its number from 1; `header` the line
    of a CSV file, or the row of a sheet, that names the columns, from 1: what stands above it is dropped, and public
    as it is. `separator` is one character between the cells of a CSV file, `encoding` that of its texts, `decimal` the
    sign before the fraction of its numbers.

    The tables of a database have a budget each, the sheets of a workbook one together: a sheet has a name and a number,
    and is no other for that.
    """

    part: str | None = None
    sheet: str | int | None = None
    header: int | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None


class FileSet(Struct, frozen=True, eq=False):
    """One open file or several. `identity` has what each is known by, with the part that is read of a database: its
    names are the same in any case."""

    parts: tuple[OpenFile, ...]
    reading: Reading
    identity: frozenset[tuple[object, ...]]

    @classmethod
    def of(cls, parts: Sequence[OpenFile], reading: Reading | None = None) -> FileSet:
        """Refuses with `DataError` one file that is named twice, also where one is a compressed copy beside it."""
        reading = reading or Reading()
        owners: dict[tuple[object, ...], int] = {}
        for place, file in enumerate(parts):
            for name in _names(file):
                part = () if reading.part is None else (reading.part.casefold(),)
                first = owners.setdefault((*name, *part), place)
                if first != place:
                    other = parts[first]
                    message = f"`{other.path}` and `{file.path}` are one file, or one is the other compressed"
                    raise refuse("DataError", message, help="name each file of a table once")
        return cls(tuple(parts), reading, frozenset(owners))

    @property
    def label(self) -> str:
        """What messages call it."""
        more = len(self.parts) - 1
        return f"`{self.parts[0].path}`" + (f" and {more} other file{'s' * (more > 1)}" if more else "")

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two sets that give the same rows in the same order."""
        return (*(file.identity for file in self.parts), self.reading)

    def check(self) -> None:
        """Refuses files that changed since they were opened."""
        for file in self.parts:
            file.check()


def paths(text: str, folders: Sequence[Path]) -> list[Path | str]:
    """The files that a path or a pattern (`part*.csv`, `**/*.parquet`) names, in the order of their names.

    They are those of the first folder that has any. A `DataError` where a pattern matches none, or more than 1,000.
    """
    place = next((folder / text for folder in folders if _exists(folder / text)), None)
    if place is not None:
        return [place]
    if not glob.has_magic(text) or "\0" in text:
        return [text]
    for folder in folders:
        names = sorted(glob.glob(text, root_dir=folder, recursive=True))
        places = [folder / name for name in names if not (folder / name).is_dir()]
        if len(places) > _MOST:
            raise refuse("DataError", f"`{text}` matches {len(places):,} files; a table has at most {_MOST:,}")
        if places:
            return [*places]
    raise refuse("DataError", f"no file matches `{text}`", help="paths in a program start at its folder")


def stem(path: str | os.PathLike[str]) -> str:
    """A path without the ending of a compressed file."""
    text = os.fspath(path)
    return next((text.removesuffix(ending) for ending in ENDINGS if text.endswith(ending)), text)


def identities(path: str | os.PathLike[str]) -> list[tuple[object, ...]]:
    """What a file at a path is known by, and what is beside it under the same name, plain or compressed."""
    statuses = []
    for ending in ("", *ENDINGS):
        try:
            statuses.append(os.stat(stem(path) + ending))
        except (OSError, ValueError):
            continue
    return [("file", status.st_dev, status.st_ino) for status in statuses]


def _names(file: OpenFile) -> set[tuple[object, ...]]:
    return {file.identity, *identities(file.real)}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
