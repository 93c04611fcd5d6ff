"""`python -m jostle`, the same as the `jostle` command. Nothing else may live here."""

from __future__ import annotations

import sys

from jostle.tools.entry import main

if __name__ == "__main__":
    sys.exit(main())
