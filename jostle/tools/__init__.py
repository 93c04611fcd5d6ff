"""The user interfaces: the command line, the REPL, and renderings of diagnostics and results. Import nothing here."""
