"""Plays planners cycle by cycle without a server: for tests and for benchmarks/convergence.py."""
