"""A charge through the door: a measurement that reads nothing."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.accounting.definitions import Price
from jostle.privacy.kernel.exposures import Exposures
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.kernel.measurement import Measurement, Release
from jostle.privacy.mechanisms.noise import Noise
from jostle.privacy.reading.vault import Reader


@dataclass(frozen=True, eq=False)
class Nothing(Measurement[None, None]):
    cost: Price

    @property
    def price(self) -> Price:
        return self.cost

    def read(self, reader: Reader) -> None:
        return None

    def empty(self) -> None:
        return None

    def release(self, exact: None, noise: Noise | None) -> Release[None]:
        return Release(None)


class Unread:
    """An engine that reads nothing, and of which nothing is more than it can do."""

    def check(self, question: object) -> None:
        return


def charge(kernel: Kernel, exposures: Exposures, price: Price, title: str) -> None:
    kernel.measure(Nothing(exposures, title, None, price))
