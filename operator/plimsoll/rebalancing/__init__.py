"""Rebalances the cluster: plans moves, carries each out as a state machine, and records it."""
