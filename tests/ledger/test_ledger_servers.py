"""A registered dataset in a session on a server: refused, and never with the advice to leave the ledger."""

from __future__ import annotations

import pytest
from ledger_place import DATASET, Place


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:9/none", "sc://127.0.0.1:9"])
def test_a_registered_dataset_is_a_file_of_this_machine(place: Place, url: str) -> None:
    pytest.importorskip("psycopg" if url.startswith("postgresql") else "pyspark")
    place.register()
    result = place.run(
        DATASET + "release n = {{ select count(*) from people with epsilon 1 }}\n", place.session(engine=url)
    )
    (fault,) = result.diagnostics
    assert fault.message.startswith("`people` is a registered dataset, a file of this machine")
    assert "the ledger counts" in (fault.help or "") and "postgres(" not in str(fault) and "spark(" not in str(fault)
    assert place.run(DATASET + "release n = {{ select count(*) from people with epsilon 1 }}\n").ok
