"""A session's kernel over one engine, and the face of that engine to public data."""

from __future__ import annotations

from typing import TypeVar

from jostle.engine.base import Answers, Engine
from jostle.events import Stream
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.register import Register
from jostle.privacy.reading.public_data import PublicData
from jostle.privacy.reading.vault import Reader

K = TypeVar("K", bound=Kernel)


def kernel_over(engine: Engine, events: Stream, answers: Answers | None = None) -> tuple[Kernel, PublicData]:
    """A `Kernel` and its `PublicData` (`assembled`)."""
    return assembled(engine, events, Kernel, answers)


def assembled(engine: Engine, events: Stream, kind: type[K], answers: Answers | None = None) -> tuple[K, PublicData]:
    """A kernel whose door alone reads private rows of `engine`, and what answers about its public data.

    `answers` say what the engine would, faster. Whoever has the engine has the rows: a session makes one here and gives
    it to nobody else.
    """
    register = Register()
    reader = Reader(engine if answers is None else answers, register.need_open)
    return kind(register, reader, events), PublicData(engine, reader.keep, reader.cells, register)
