"""Servers of Spark Connect: Sail always, Apache Spark where `SPARK_HOME` and Java are there."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def sail() -> tuple[Any, str]:
    """A server in this process, and its URL."""
    pysail = pytest.importorskip("pysail.spark", reason="pysail, a server of Spark Connect, is not installed")
    server = pysail.SparkConnectServer(port=0)
    server.start(background=True)
    host, port = server.listening_address
    return server, f"sc://{host}:{port}"


@pytest.fixture(scope="session", params=["sail", "spark"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sail":
        server, at = sail()
        yield at
        server.stop()
        return
    home = os.environ.get("SPARK_HOME", "")
    if not (Path(home, "bin", "spark-submit").exists() and shutil.which("java")):
        pytest.skip("Apache Spark is looked for in SPARK_HOME, with Java 17 beside it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {"spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 2}  # fmt: skip
    command = [f"{home}/bin/spark-submit", "--master", "local[2]", "--class", kind]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    folder = tmp_path_factory.mktemp("spark")
    process = subprocess.Popen([*command, "spark-internal"], cwd=folder, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        for _ in range(120):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
