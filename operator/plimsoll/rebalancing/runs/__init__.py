"""Runs policies: inputs, plan, execution by mode, status."""
