"""Rebalancing moves pods that are in the wrong place: plans, the life of each move, its record."""
