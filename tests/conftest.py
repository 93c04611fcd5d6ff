"""What every test shares: a cache of its own, so that no run of the tests reads or leaves a model of the user's."""

import os
import tempfile

if "JOSTLE_TESTS_CACHE" not in os.environ:  # workers of one run inherit it
    os.environ["JOSTLE_TESTS_CACHE"] = tempfile.mkdtemp(prefix="jostle-tests-")
os.environ["JOSTLE_CACHE"] = os.environ["JOSTLE_TESTS_CACHE"]
os.environ["JOSTLE_LEDGER"] = os.path.join(os.environ["JOSTLE_TESTS_CACHE"], "no-ledger", "ledger")
