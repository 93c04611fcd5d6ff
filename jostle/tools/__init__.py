"""What a person touches: the command line, the REPL, and how diagnostics and results look. Import nothing here."""
