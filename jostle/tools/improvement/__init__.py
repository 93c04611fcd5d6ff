"""`jostle improve`: formulas for how good a program's Options are, from the runs that its choices were trained on."""
