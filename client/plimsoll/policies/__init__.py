"""Translates SchedulingPolicies into profiles and rebalancing settings, and writes their status."""
