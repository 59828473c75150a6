"""Writes of the operator to the API server: bindings, evictions, taints, volumes, rollouts, events."""
