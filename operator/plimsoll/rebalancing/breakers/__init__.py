"""Breakers of rebalancing: the stop button and displaced pods."""
