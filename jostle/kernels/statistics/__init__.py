"""Everyday statistics from released sums and counts: correlation, regression, comparison, tables, summaries.

What is calculated here has been paid for. Every number comes with the error that the noise leaves in it, in closed form
from the deviations of what was measured, and where rows are a sample of more, with the error of sampling beside it.
"""
