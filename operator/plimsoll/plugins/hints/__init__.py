"""Queueing hints of the plugins whose own modules are long enough without them."""
