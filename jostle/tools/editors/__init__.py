"""What editors and notebooks are given: colours, and a language server. Each imports its library where it is used."""
