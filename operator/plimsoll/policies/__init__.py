"""SchedulingPolicies: translated to profiles and rebalancing settings; their conditions and status."""
