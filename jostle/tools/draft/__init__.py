"""A first draft of a description, from what is public: types, ranges and codes that somebody wrote down.

No row is read: of a CSV file the header, of a Parquet file the schema, of a frame its types. What is not known is
written `?`, which no program runs with.
"""

from __future__ import annotations

from jostle.tools.draft.columns import Column, clause, describe, program
from jostle.tools.draft.sources import columns_of

__all__ = ["Column", "clause", "columns_of", "describe", "program"]
