"""Eviction records as they are read: decisions, outcomes, and the lessons of planners."""
