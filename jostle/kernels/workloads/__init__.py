"""Workloads: sets of linear queries, held implicitly, and joint ones: strategies and answers that agree."""
