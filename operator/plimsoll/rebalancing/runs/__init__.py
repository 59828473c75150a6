"""Runs of policies: inputs, plan, execution by mode, status."""
