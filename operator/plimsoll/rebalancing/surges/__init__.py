"""Surges move the only pod of a Deployment by a rollout: the replacement is ready before the old pod goes."""
