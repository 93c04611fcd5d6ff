"""Servers of Spark Connect: Sail always, Apache Spark where it is there."""

from __future__ import annotations

import engines_spark
import pytest


@pytest.fixture(scope="session", params=["sail", "apache"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sail":
        pytest.importorskip("pysail.spark", reason="pysail, a server of Spark Connect, is not installed")
        return engines_spark.sail_url()
    if not engines_spark.is_there():
        pytest.skip("Apache Spark is looked for in SPARK_HOME, with Java 17 beside it")
    return engines_spark.apache_url()
