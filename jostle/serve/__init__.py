"""`jostle serve`: owners keep the data and the ledger, analysts send programs, and nothing but answers comes out.

The room stands outside of all that is trusted for privacy: it opens sessions and the ledger as the command line does.
`docs/privacy/server.md` says what it defends and how.
"""
