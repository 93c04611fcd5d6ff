"""Servers of Spark Connect for the suite: Sail and Apache Spark, each in a process of its own.

A Sail in the process of the tests ends at the first SIGINT that this gets, also where a test sends one and catches it.

Apache Spark is looked for in `SPARK_HOME`, such as the folder `pyspark` of a Python environment with that package, with
Java 17 or later on the path. `JOSTLE_SPARK` may be the URL of a server that runs already.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jostle.backends.remote import RemoteData
from jostle.backends.spark.engine import Spark
from jostle.engine.base import Opened

RUNNING = "JOSTLE_SPARK"
HONEST = {"SAIL_EXECUTION__COLLECT_STATISTICS": "false"}
"""How Sail reads files and not what their footers say."""
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.connect.execute.manager.detachedTimeout": "20s",
}
"""Settings of a server that is asked much, each time of few rows, and whose clients may be stopped."""
_KIND = "org.apache.spark.sql.connect.service.SparkConnectServer"


def started_sail(port: int = 0) -> tuple[Any, str]:
    """A server in this process, and its URL."""
    from pysail.spark import SparkConnectServer

    os.environ.update(HONEST)
    server = SparkConnectServer(port=port)
    server.start(background=True)
    host, port = server.listening_address
    return server, f"sc://{host}:{port}"


_SAIL = """from pysail.spark import SparkConnectServer
server = SparkConnectServer(port=0)
server.start(background=True)
print(server.listening_address[1], flush=True)
input()
"""


def sail_process(settings: Mapping[str, str] = HONEST) -> tuple[subprocess.Popen[str], str]:
    """A server in a process of its own, which ends with this one and not by its signals, and its URL."""
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    command = [sys.executable, "-c", _SAIL]
    process = subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=quiet,
        text=True,
        start_new_session=True,
        env={**os.environ, **settings},
    )
    assert process.stdout is not None
    return process, f"sc://127.0.0.1:{int(process.stdout.readline())}"


def is_there() -> bool:
    """Whether Apache Spark can be started, or runs."""
    home = os.environ.get("SPARK_HOME", "")
    return bool(os.environ.get(RUNNING) or (Path(home, "bin", "spark-submit").exists() and shutil.which("java")))


def started_apache() -> tuple[subprocess.Popen[bytes], str]:
    """A server with two workers in 1.5 GB, in a process of its own, and its URL; it writes to a temporary folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="jostle-spark-")
    settings = {"spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 2, "spark.driver.memory": "1500m",
                "spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/warehouse"}  # fmt: skip
    settings |= QUICK
    command = [f"{os.environ['SPARK_HOME']}/bin/spark-submit", "--master", "local[2]", "--class", _KIND]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, "spark-internal"], cwd=folder, stdout=quiet, stderr=quiet)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(process.terminate)
    for _ in range(1200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, f"sc://127.0.0.1:{port}"
        time.sleep(0.5)
    raise TimeoutError("Apache Spark did not start in ten minutes")


@cache
def apache_url() -> str:
    """The URL of the Apache Spark of this process, or of the one that runs."""
    return os.environ.get(RUNNING) or started_apache()[1]


@cache
def sail_url() -> str:
    """The URL of the Sail of the tests of this process."""
    process, url = sail_process()
    atexit.register(process.kill)
    return url


class Filed(Spark):
    """An engine that is given an Arrow table as a Parquet file, which the cluster reads."""

    def open(self, origin: Any, *, public: bool, names: tuple[str, ...] = ()) -> Opened:
        if isinstance(origin, pa.Table):
            folder = tempfile.mkdtemp(prefix="jostle-table-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            pq.write_table(origin, f"{folder}/rows.parquet")
            origin = RemoteData("spark", (f"{folder}/rows.parquet",))
        return super().open(origin, public=public, names=names)


def sail() -> Spark:
    return Filed(sail_url())


def apache() -> Spark:
    return Filed(apache_url())
