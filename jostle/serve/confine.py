"""What the process of a run may do: the files it is handed, no network, and limits of memory, time and files.

The language is the first wall: a session of an analyst opens registered data only. This is the second one, of the
operating system: Landlock (Linux 5.13 and later) for files and TCP, a network namespace where the system lets one be
made, `setrlimit` everywhere. Where the system has none of it, `confine` says so and the first wall stands alone.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the system calls of Landlock, the same on every architecture
_READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read a file, list a folder
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_OF_FILES = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14)  # the rights that a file can have, not a folder
_NO_NEW_PRIVILEGES = 38
_NEW_NET, _NEW_USER = 0x40000000, 0x10000000
GIGABYTE = 2**30
_SCOPES = 3  # no signal to a process outside, no socket by an abstract name (Landlock 6)
SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/urandom", "/dev/null", "/dev/zero")


def confine(
    readable: Iterable[Path], writable: Iterable[Path], seconds: float, memory: int, *, network: bool = False,
    private: bool = True,
) -> list[str]:  # fmt: skip
    """Confines this process for good; names what of it the system does not offer. It ends itself after `seconds`.

    `memory` is in bytes of address space. With `network`, for a ledger or data on a server, sockets stay. What is not
    `private`, as a check of a text, for which somebody waits at an editor, is not slower than the server.
    """
    ends_after(seconds)
    _gives_way(private)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * GIGABYTE, 4 * GIGABYTE))
    cpu = max(1, round(seconds * (os.cpu_count() or 1)) + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    system = ctypes.CDLL(None, use_errno=True)
    lacking = []
    if not network and not _without_network(system):
        lacking.append("a network namespace")
    python = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[2], *map(Path, sys.path))
    if not _landlock(system, (*python, *map(Path, SYSTEM), *readable), writable, network):
        lacking.append("Landlock")
    return lacking


def ends_after(seconds: float) -> None:
    """This process is ended by the system after `seconds`, whatever it does then."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _gives_way(private: bool) -> None:
    """Where memory ends it is this process that the system ends. Where it reads private data the server goes first: how
    soon that answers says little of what this process does. The group of a session goes with a process that began it,
    and with no other: a terminal's is not ours."""
    os.nice(15 * private)
    own = [("autogroup", "15")] if private and os.getsid(0) == os.getpid() else []
    for file, text in (*own, ("oom_score_adj", "1000")):
        with suppress(OSError):
            Path("/proc/self", file).write_text(text)


def _without_network(system: ctypes.CDLL) -> bool:
    """Whether this process now has a network of its own, in which there is nothing."""
    if system.unshare(_NEW_NET) == 0:
        return True
    user, group = os.getuid(), os.getgid()
    if system.unshare(_NEW_USER | _NEW_NET) != 0:
        return False
    with suppress(OSError):  # files are opened as this user all the same
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _landlock(system: ctypes.CDLL, readable: Iterable[Path], writable: Iterable[Path], network: bool) -> bool:
    version = system.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1 or system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    rights, tcp = _RIGHTS[min(version, 3)], 0 if network or version < 4 else 3
    attributes = struct.pack("=QQQ", rights, tcp, _SCOPES)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = system.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    if rules < 0:
        return False
    try:
        for path, allowed in (*((p, _READ & rights) for p in readable), *((p, rights) for p in writable)):
            with suppress(OSError):  # what is not there needs no rule
                _allow(system, rules, path, allowed)
        return bool(system.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(system: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights &= rights if path.is_dir() else _OF_FILES
        system.syscall(_ADD, rules, 1, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)
