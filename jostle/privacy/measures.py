"""The old name of `accounting.definitions` and `accounting.conversions`, for branches that are under way."""

from jostle.accounting.amounts import Amount as Amount
from jostle.accounting.conversions import epsilon_of as epsilon_of
from jostle.accounting.conversions import pure_epsilon as pure_epsilon
from jostle.accounting.conversions import rho_of as rho_of
from jostle.accounting.conversions import root_two_rho as root_two_rho
from jostle.accounting.definitions import UNSPECIFIED as NOT_SAID
from jostle.accounting.definitions import ChargePurpose as Asked
from jostle.accounting.definitions import Measure as Measure
from jostle.accounting.definitions import Price as Price
from jostle.accounting.definitions import gaussian_price as gaussian_price
from jostle.accounting.definitions import pure_price as pure_price
from jostle.accounting.definitions import stability_price as stability_price

__all__ = ["NOT_SAID", "Asked"]
