"""Many linear answers from one measurement: axes, the choice of a strategy, and the answers made of it."""
