"""The old name of `accounting.amounts`, for branches that are under way."""

from jostle.accounting.amounts import QUANTA as QUANTA
from jostle.accounting.amounts import as_float as as_float
from jostle.accounting.amounts import as_text as as_text
from jostle.accounting.amounts import quanta as quanta
from jostle.accounting.amounts import rounded_up as rounded_up
