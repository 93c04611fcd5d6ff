"""The old name of `accounting.budget_tree`, for branches that are under way."""

from jostle.accounting.budget_tree import Cost as Cost
from jostle.accounting.budget_tree import Meter as Meter
from jostle.accounting.budget_tree import Path as Path
