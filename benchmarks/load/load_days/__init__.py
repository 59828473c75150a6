"""Replays a day of measured usage against schedulers and rebalancers that place by load, and by requests."""
