"""What every test shares: a cache and a ledger of its own, so that no run of the tests reads or leaves a user's."""

import atexit
import os
import shutil
import tempfile

if "JOSTLE_TESTS_CACHE" not in os.environ:  # the workers of one run inherit it
    os.environ["JOSTLE_TESTS_CACHE"] = tempfile.mkdtemp(prefix="jostle-tests-")
    atexit.register(shutil.rmtree, os.environ["JOSTLE_TESTS_CACHE"], ignore_errors=True)
os.environ["JOSTLE_CACHE"] = os.environ["JOSTLE_TESTS_CACHE"]
os.environ["JOSTLE_LEDGER"] = os.path.join(os.environ["JOSTLE_TESTS_CACHE"], "no-ledger", "ledger")
