"""The register: the private sources of a session, and whether they may be measured now.

It refuses data that are private under one name and public under another, and, before every charge, sources that are
closed, training on private data, and another process than the one that spends.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from jostle.accounting.accounts import Account, parts_of
from jostle.accounting.definitions import Measure
from jostle.accounting.units import Unit
from jostle.diagnostics import refuse
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.faults import closed
from jostle.privacy.kernel.sources import Source
from jostle.privacy.mechanisms.noise import Noise
from jostle.source import Span


class Register:
    """The sources of a session by the parts of their identity, and which parts were read as public.

    A table of a source's persons has an identity of its own, and its own unit.
    """

    def __init__(self) -> None:
        self._private: dict[Hashable, tuple[Source, Unit]] = {}
        self._public: set[Hashable] = set()
        self.names: dict[str, Source] = {}
        self._training, self._process = 0, os.getpid()

    @contextmanager
    def training(self) -> Iterator[None]:
        """While this is open, no private source may be measured."""
        self._training += 1
        try:
            yield
        finally:
            self._training -= 1

    def declare(
        self, name: str, identity: Hashable, measure: Measure, unit: Unit, span: Span | None, noise: Noise | None = None
    ) -> Source:
        """The source of `identity`, new or as it was first declared; seeded `noise` makes it a simulated one."""
        owner, *others = {self._private.get(part) for part in parts_of(identity)}
        if owner is None or others:
            source = Source.declared(name, measure, unit, span, noise)
            return self.link(name, identity, source, unit, span)
        source, before = owner
        if before != unit or source.measure.kind != measure.kind or source.measure.unit != measure.unit:
            raise refuse(
                "DataError", f"`{name}` and `{source.name}` are the same data with another unit or measure", span,
                help=f"declare both `protecting {before}` with a budget in {source.measure.unit}",
            )  # fmt: skip
        self.names[name] = source
        return source

    def link(self, name: str, identity: Hashable, source: Source, unit: Unit, span: Span | None) -> Source:
        """Makes `identity` a table of a source, under its budget."""
        if self._public & parts_of(identity):
            raise refuse(
                "PrivateValue", f"`{name}` is declared private, yet the same data were read as public before", span,
                help="declare it private before its first use, and use only the private name",
            )  # fmt: skip
        if {self._private.get(part) for part in parts_of(identity)} - {None, (source, unit)}:
            help = "declare a file once, or in the same way each time"
            raise refuse("DataError", f"data of `{name}` are private already under another budget", span, help=help)
        self._private.update(dict.fromkeys(parts_of(identity), (source, unit)))
        self.names[name] = source
        return source

    def read_publicly(self, identity: Hashable, span: Span | None) -> None:
        for private, _ in (self._private[part] for part in parts_of(identity) & self._private.keys()):
            raise refuse(
                "PrivateValue", f"these data are private (`{private.name}`) and cannot be read as public too", span,
                help=f"use `{private.name}`",
            )  # fmt: skip
        self._public |= parts_of(identity)

    def accounts(self) -> list[Account]:
        """Those of registered sources."""
        return [source.account for source in self.names.values() if source.account is not None]

    def need_open(self, exposures: Exposures, span: Span | None = None) -> None:
        """Refuses private sources while training, in any process but the kernel's, or closed, and rows without a bound.

        Every charge asks this first, and so does everything that holds exact private values.
        """
        for exposure in exposures:
            exposure.bounded(span)
            if exposure.source.simulated:
                continue
            if exposure.source.closed:
                raise closed(exposure.source.name, span)
            if self._training:
                raise refuse(
                    "PrivateValue", f"training reaches the private source `{exposure.source.name}`", span,
                    help="train on public data: `counts(…)` or `table(…)` without `private`",
                )  # fmt: skip
            if os.getpid() != self._process:
                raise refuse(
                    "PrivateValue", f"`{exposure.source.name}` is measured in another process than its own", span,
                    help="a session spends in the process that made it: start a session here",
                )  # fmt: skip
