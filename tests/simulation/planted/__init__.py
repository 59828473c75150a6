"""Slips, a function each, that break an operator which was just built."""
