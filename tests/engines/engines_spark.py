"""Spark for the suite: Sail, a server of Spark Connect, in this process."""

from __future__ import annotations

import atexit
from functools import cache

from jostle.engine.spark.engine import Spark


@cache
def server() -> str:
    """The URL of a server of this process."""
    from pysail.spark import SparkConnectServer

    started = SparkConnectServer(port=0)
    started.start(background=True)
    atexit.register(started.stop)
    host, port = started.listening_address
    return f"sc://{host}:{port}"


def sail() -> Spark:
    return Spark(server())
