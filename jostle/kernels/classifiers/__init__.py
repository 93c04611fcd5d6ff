"""Classifiers as public values, and what fits them to released counts."""
