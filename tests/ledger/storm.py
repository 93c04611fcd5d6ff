"""Many processes spend from one ledger at once while some are killed, and nothing is lost or spent twice.

    python -m tests.ledger.storm --rounds 20 [--processes 16] [--spends 200] [--seed 1]

Each process charges through a kernel of its own, on the whole or on parts of a partition, and writes a line some
time after its charge came back, as a program shows an answer only after it was paid. After every round: the total is
within the limit, every line is an entry of the history with that hash and amount, and the chain holds to its seal.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ledger_charge import Unread, charge

from jostle.accounting.amounts import QUANTA, Amount, Unit, as_text
from jostle.accounting.definitions import Measure, pure_price
from jostle.diagnostics import Refusal
from jostle.events import Stream
from jostle.privacy.kernel.exposures import Exposure, Source
from jostle.privacy.kernel.kernel import Kernel
from jostle.privacy.ledger.ledger import Account, Ledger
from jostle.privacy.ledger.registered import Terms
from jostle.privacy.reading.vault import kernel_over
from jostle.tools.data import verify


@dataclass
class Round:
    """What one round came to."""

    charges: int
    shown: int
    killed: int
    spent: int
    limit: int
    seconds: float


def registered(
    folder: Path, limit: Amount, kind: str = "pure", name: str = "people", at: str | Path | None = None
) -> Ledger:
    """A ledger in `folder`, or elsewhere, with one dataset of one column."""
    data = folder / f"{name}.csv"
    data.write_text(f"age,{name}\n30,\n40,\n", encoding="utf-8")  # bytes of its own
    ledger = Ledger(at or folder / "ledger.db")
    ledger.register(Terms(name, "table", os.path.realpath(data), (), Unit(), Measure(kind, limit)))
    return ledger


def opened(ledger: Ledger, name: str = "people") -> tuple[Kernel, Source]:
    """A session's kernel with the dataset declared in it; its engine reads nothing."""
    kernel = kernel_over(Unread(), Stream())[0]  # type: ignore[arg-type]
    dataset, _ = ledger.open(name)
    source = kernel.register.declare(name, ("dataset", name), dataset.terms.measure, dataset.terms.unit, None)
    source.join(Account(ledger, dataset), None)
    return kernel, source


def spender(at: str | Path, lines: Path, spends: int, seed: int) -> int:
    """The life of one process; gives how many of its charges were refused."""
    draw = random.Random(seed)
    kernel, source = opened(Ledger(at, timeout=120))
    out = os.open(lines, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    refused = 0
    for _ in range(spends):
        at = () if draw.random() < 0.5 else (("parts", draw.randrange(4)),)
        amount = Amount("epsilon", draw.randrange(1, QUANTA))
        try:
            charge(kernel, (Exposure(source, at),), pure_price(amount), "count")
        except Refusal as refusal:
            if refusal.first.kind != "BudgetExceeded":
                raise
            refused += 1
            continue
        time.sleep(draw.random() / 200)  # as long as reading and drawing noise would take
        assert source.account is not None
        receipt = source.account.receipts[-1]
        os.write(out, f"{receipt.number} {receipt.hash} {amount}\n".encode())
    return refused


def one_round(folder: Path, processes: int, spends: int, seed: int, at: str | Path | None = None) -> Round:
    """Raises AssertionError where anything was lost."""
    draw = random.Random(seed)
    limit = Amount("epsilon", draw.randrange(1, 1 + processes * spends * QUANTA // 2))
    at = at or folder / "ledger.db"
    ledger = registered(folder, limit, at=at)
    ledger.store.close()
    began = time.monotonic()
    children: dict[int, int] = {}
    for k in range(processes):
        pid = os.fork()
        if pid == 0:
            gc.disable()  # what the parent left over is the parent's to free
            status = 1
            try:
                spender(at, folder / f"shown{k}", spends, seed * 1000 + k)
                status = 0
            finally:
                os._exit(status)
        children[pid] = k
    killed = _kill_some(draw, list(children), processes // 2, spends)
    for pid in children:
        _, status = os.waitpid(pid, 0)
        assert status == 0 or pid in killed, f"a process that nobody killed ended with {status}"
    seconds = time.monotonic() - began
    held = verify(ledger, "people")
    assert held.spent[0] <= limit.value, "more was spent than the limit"
    entries = {e.number: e for e in ledger.history("people")}
    shown = 0
    for k in range(processes):
        path = folder / f"shown{k}"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            number, said, amount = line.split(" ", 2)
            entry = entries[int(number)]
            assert entry.hash == said and entry.content["amount"] == amount, "a shown release was not counted"
            shown += 1
    assert shown <= len(entries) - 1
    return Round(len(entries) - 1, shown, len(killed), held.spent[0], limit.value, seconds)


def _kill_some(draw: random.Random, pids: list[int], how_many: int, spends: int) -> set[int]:
    """Kills some of our own children at random moments; gives those that were not already done."""
    killed = set()
    for pid in draw.sample(pids, how_many):
        time.sleep(draw.random() * spends / 400)
        done = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if done is None:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    return killed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--spends", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print("round  entries  shown  killed  spent / limit (epsilon)  seconds")
    for k in range(asked.rounds):
        with tempfile.TemporaryDirectory() as folder:
            made = one_round(Path(folder), asked.processes, asked.spends, asked.seed + k)
        spent, limit = as_text(made.spent), as_text(made.limit)
        line = f"{k + 1:5}  {made.charges:7}  {made.shown:5}  {made.killed:6}  {spent} / {limit}  {made.seconds:.1f}"
        print(line, flush=True)
    print("spent never exceeded the limit, every shown release is in the history, every chain holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
