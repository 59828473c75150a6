"""Provides the machine on which an operator runs: its clocks, random numbers, threads and names."""
