"""Strategies, estimates and partitions behind the histogram options."""
