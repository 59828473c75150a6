"""Moves pods by a rollout that starts the replacement first."""
