"""Open files: all tests and reads of a source use one descriptor.

A path tells where a file was at one moment. Its owner, type and content are read from the open descriptor. So a link
that is moved meanwhile has no effect, and a file that is written meanwhile is refused. Only files on a storage file
system are accepted as tables, and no devices, pipes, pseudo-files of the system, deleted files or spill files of an
engine.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import weakref
from pathlib import Path

from msgspec import Struct

from jostle.diagnostics import Refusal, refuse


def is_system(path: str | os.PathLike[str]) -> bool:
    """Whether a path is in a folder with information on processes, or with spilled data. The existence of such a file
    may depend on rows, so programs must not learn it."""
    roots, at = ("/proc", "/sys", os.path.realpath(spill_root())), ""
    for part in Path(path).absolute().parts if "\0" not in os.fspath(path) else ():
        at = os.path.realpath(os.path.join(at, part))
        if any(at == root or at.startswith(root + os.sep) for root in roots):
            return True
    return False


def spill_root() -> Path:
    """This user's folder for data that do not fit in memory."""
    return Path(tempfile.gettempdir()) / f"jostle-spill-{os.geteuid()}"


# Storage file systems without a device of their own; others without one are pseudo file systems.
_KEEPING = frozenset({
    "tmpfs", "ramfs", "overlay", "aufs", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse", "ceph", "zfs",
    "btrfs", "ecryptfs", "lustre", "beegfs", "gpfs", "afs", "vboxsf", "glusterfs", "orangefs", "ocfs2", "ubifs",
})  # fmt: skip


class OpenFile(Struct, frozen=True, eq=False, weakref=True):
    """A regular file that is open for reading for the lifetime of this object. `path` is its name in messages, and
    `real` its path without links when it was opened."""

    descriptor: int
    path: str
    real: str
    status: os.stat_result

    @property
    def identity(self) -> tuple[str, int, int]:
        """The identity of the file, equal for all its names, including hard links."""
        return ("file", self.status.st_dev, self.status.st_ino)

    @property
    def name(self) -> str:
        """A path that opens the same file again in this process, whatever its own path refers to now."""
        return f"{'/proc/self/fd' if sys.platform == 'linux' else '/dev/fd'}/{self.descriptor}"

    def changed(self) -> bool:
        """Whether the file was written, moved or removed since it was opened."""
        return _stamp(os.fstat(self.descriptor)) != _stamp(self.status)

    def check(self) -> None:
        """Refuses a file that changed since it was opened."""
        if self.changed():
            message = f"`{self.path}` changed while this program ran"
            raise refuse("DataError", message, help="run it again when nobody writes to the file")


def open_file(path: str | os.PathLike[str]) -> OpenFile:
    """Opens a file for reading. `DataError` if there is none, or if it is not a regular file."""
    label = str(path)
    if is_system(path):
        raise _of_system(label)
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
        if not file.status.st_nlink or not _is_kept(descriptor) or is_system(file.real):
            raise _of_system(label)
    except (OSError, Refusal) as error:
        os.close(descriptor)
        raise (_unreadable(label, error) if isinstance(error, OSError) else error) from None
    weakref.finalize(file, os.close, descriptor)
    return file


def _of_system(label: str) -> Refusal:
    message = f"`{label}` is no file of a disk, but a part of the running system"
    return refuse("DataError", message, help="a table is a file that stays as it is")


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


def _real(descriptor: int, path: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return os.path.realpath(path)


def _is_kept(descriptor: int) -> bool:
    """Whether an open file is on a storage file system: one with a device, or a known one. Tested on Linux, where files
    of `/proc` and `/sys` are reported as regular."""
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
"""The endings of compressed files."""


def stem(path: str | os.PathLike[str]) -> str:
    """A path without the ending of a compressed file."""
    text = os.fspath(path)
    return next((text.removesuffix(ending) for ending in ENDINGS if text.endswith(ending)), text)


def identities(path: str | os.PathLike[str]) -> list[tuple[object, ...]]:
    """The identities of a file at a path, and of its plain or compressed copy with the same name."""
    statuses = []
    for ending in ("", *ENDINGS):
        try:
            statuses.append(os.stat(stem(path) + ending))
        except (OSError, ValueError):
            continue
    return [("file", status.st_dev, status.st_ino) for status in statuses]
