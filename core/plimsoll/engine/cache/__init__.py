"""Caches of one pod template: filter results and scores per node."""
