"""What a charge costs: in the session alone (microseconds), and with the ledger's commit (milliseconds).

    python -m tests.ledger.costs [--charges 1000] [--folder DIR]

A session of many charges, on the whole of a source and on the parts of a partition of 50; the figures are the median,
the mean and the slowest of single charges. `--folder` says on which disk the ledger is put.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parent))
    from storm import opened, registered
else:
    from tests.ledger.storm import opened, registered

from ledger_charge import Unread, charge

from jostle.accounting.amounts import QUANTA, Amount, Unit
from jostle.accounting.amounts import Path as At
from jostle.accounting.definitions import Measure, Price, gaussian_price, pure_price
from jostle.events import Stream
from jostle.privacy.kernel.exposures import Exposure, Source
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.reading.vault import kernel_over

KINDS = {
    "pure": (Amount("epsilon", 10**9 * QUANTA), Amount("epsilon", QUANTA // 1000), pure_price),
    "zcdp": (Amount("rho", 10**9 * QUANTA), Amount("rho", QUANTA // 1000), lambda asked: gaussian_price(asked, 0.0)),
    "approximate": (Amount("epsilon", 30 * QUANTA, QUANTA // 10**6), Amount("epsilon", QUANTA // 1000), pure_price),
}


def whole(k: int) -> At:
    return ()


def parts(k: int) -> At:
    return (("partition", k % 50),)


def timed(kernel: Kernel, source: Source, price: Price, charges: int, path: Callable[[int], At]) -> list[float]:
    """Seconds of each of `charges` charges."""
    took = []
    for k in range(charges):
        began = time.perf_counter()
        charge(kernel, (Exposure(source, path(k)),), price, "count")
        took.append(time.perf_counter() - began)
    return took


def in_session(kind: str, charges: int, path: Callable[[int], At]) -> list[float]:
    limit, amount, price = KINDS[kind]
    kernel = kernel_over(Unread(), Stream())[0]  # type: ignore[arg-type]
    source = kernel.register.declare("people", "people", Measure(kind, limit), Unit(), None)
    with kernel.allot(Amount(limit.unit, limit.value), None):
        return timed(kernel, source, price(amount), charges, path)


def with_ledger(folder: Path, charges: int) -> list[float]:
    limit, amount, price = KINDS["pure"]
    kernel, source = opened(registered(folder, limit))
    return timed(kernel, source, price(amount), charges, whole)


def said(took: list[float], unit: float) -> str:
    return "  ".join(f"{value * unit:9.2f}" for value in (statistics.median(took), statistics.fmean(took), max(took)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--charges", type=int, default=1000)
    parser.add_argument("--folder")
    asked = parser.parse_args()
    print(f"{asked.charges} charges                    median       mean    slowest")
    for kind in KINDS:
        for path in (whole, parts):
            print(f"{kind + ', ' + path.__name__:24} µs  {said(in_session(kind, asked.charges, path), 1e6)}")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        print(f"{'pure, with the ledger':24} ms  {said(with_ledger(Path(folder), asked.charges), 1e3)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
