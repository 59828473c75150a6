"""SchedulingPolicies: what users write becomes profiles and rebalancing settings, and their status."""
