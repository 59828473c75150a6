"""Runs of policies: inputs, plan, modes that carry the plan out, and status."""
