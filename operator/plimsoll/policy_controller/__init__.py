"""Serves SchedulingPolicies: validates each change, sets profiles and rebalancers, writes the status."""
