"""A connection to a cluster: how long a server is waited for, one that falls silent, and processes that are forked."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from jostle.backends.spark.engine import Spark
from jostle.diagnostics import Refusal

LONG = "SELECT count(*) AS a0 FROM range({0}) a, range({0}) b WHERE (a.id + b.id) % 7 = 1"


def test_a_server_that_is_not_there_is_asked_again_for_some_seconds(url: str) -> None:
    engine = Spark(url)
    assert engine.fetch("SELECT 1") == [(1,)]
    from pyspark.sql.connect.client.retries import RetryPolicyState  # which another import came before (`client`)

    (policy,) = engine.connection.session.client.get_retry_policies()
    state, waits = RetryPolicyState(policy), []
    while (wait := state.next_attempt()) is not None:
        waits.append(wait)
    assert 3_000 <= sum(waits) <= 5_000 and max(waits) <= 1_000
    engine.close()


def test_a_forked_process_leaves_the_connection_to_its_parent(url: str) -> None:
    """It has the parent's socket: what it said, also by collecting garbage, would end the parent's session."""
    engine = Spark(url)
    assert engine.fetch("SELECT 1") == [(1,)]
    child = os.fork()
    if not child:
        signal.alarm(20)  # a child that speaks hangs
        refused = 1
        try:
            engine.fetch("SELECT 2")
        except Refusal as refusal:
            refused = int("another process's" not in refusal.first.message)
        finally:
            engine.close()
            del engine
            gc.collect()
            os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine.fetch("SELECT 3") == [(3,)]
    engine.close()


def test_a_server_that_says_nothing_is_asked_for_a_sign_of_life(url: str) -> None:
    """By hand: a Sail stopped by SIGSTOP was left after a minute, with `_SILENCE` of a second: that is the least."""
    engine = Spark(url)
    options = dict(engine.connection.session.client._builder._channel_options)
    assert 300_000 < options["grpc.keepalive_time_ms"] < 600_000 and options["grpc.http2.max_pings_without_data"] == 0
    engine.close()


class Wire:
    """A way to a server that can be broken, and made again by who tries again."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url).hostname, urlsplit(url).port
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"sc://127.0.0.1:{self._socket.getsockname()[1]}"
        self.made = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._socket.accept()[0]
                far = socket.create_connection(self._place)
                self.made += 1
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := one.recv(65536):
                other.sendall(said)

    def broken(self) -> None:
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()
        self.broken()


@pytest.fixture
def wire(url: str) -> Iterator[Wire]:
    wire = Wire(url)
    yield wire
    wire.close()


def test_a_connection_that_breaks_in_the_middle_is_made_again_and_the_answer_is_the_same(wire: Wire) -> None:
    engine = Spark(wire.url)
    assert engine.fetch(LONG.format(7)) == [(7,)] and wire.made == 1
    breaks = threading.Timer(0.1, wire.broken)
    breaks.start()
    assert engine.fetch(LONG.format(14_000)) == [(14_000 * 2_000,)]
    breaks.join()
    assert wire.made == 2
    engine.close()
