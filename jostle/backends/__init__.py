"""Engines and ledgers on servers. Loading this room enters its ledgers where programs look for them."""

from jostle.backends.postgres import ledger as ledger
