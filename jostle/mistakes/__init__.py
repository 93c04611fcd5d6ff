"""What a person probably meant: readings of a text that does not parse or that a run refuses, tried before they are
offered. Nothing here runs a program or reads rows.
"""
