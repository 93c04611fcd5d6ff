"""What every pass must agree on: the names that each program knows, and the operations on numbers and rows.

Tables of facts without behaviour. The checker, the run, editors and the reference pages read them, and a name stands
nowhere else. Above `syntax`, below all that gives a program a meaning; nothing heavy is imported.
"""
