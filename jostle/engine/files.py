"""A file as it is open: what is asked about a source, and what is read of it, concern one descriptor.

A path says where a file was at one moment. Who it belongs to, what type it has and what stands in it are asked of the
open descriptor. So a link that moves meanwhile changes nothing, and a file that is written to meanwhile is refused.
Only files that a file system keeps are tables: devices, pipes, the pseudo-files of the system, files that no folder
names any more and the spill files of an engine are not.
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
    """Whether a path leads through what tells how processes fare, or what they have spilled. Whether there is a file
    of such a name may depend on rows: no program is to know."""
    roots, at = ("/proc", "/sys", os.path.realpath(spill_root())), ""
    for part in Path(path).absolute().parts if "\0" not in os.fspath(path) else ():
        at = os.path.realpath(os.path.join(at, part))
        if any(at == root or at.startswith(root + os.sep) for root in roots):
            return True
    return False


def spill_root() -> Path:
    """The folder, of one user, in which engines put what does not fit in memory."""
    return Path(tempfile.gettempdir()) / f"jostle-spill-{os.geteuid()}"


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
        return f"{'/proc/self/fd' if sys.platform == 'linux' else '/dev/fd'}/{self.descriptor}"

    def changed(self) -> bool:
        """Whether somebody wrote to the file, or moved or removed it, since it was opened."""
        return _stamp(os.fstat(self.descriptor)) != _stamp(self.status)

    def check(self) -> None:
        """Refuses a file that changed since it was opened."""
        if self.changed():
            message = f"`{self.path}` changed while this program ran"
            raise refuse("DataError", message, help="run it again when nobody writes to the file")


def open_file(path: str | os.PathLike[str]) -> OpenFile:
    """Opens a file to be asked about and read. A `DataError` where there is none, or something else than a file."""
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
