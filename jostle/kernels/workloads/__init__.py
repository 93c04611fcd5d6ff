"""Workloads: sets of linear queries, held implicitly."""
