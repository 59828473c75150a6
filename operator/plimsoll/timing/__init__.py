"""Timers, retries and limits on rates."""
