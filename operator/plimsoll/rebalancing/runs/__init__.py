"""Runs of policies: what one reads, its plan, what its mode does with that, and its status."""
