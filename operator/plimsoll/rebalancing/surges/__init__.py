"""Moves by a rollout that starts the replacement first."""
