"""Compiled arithmetic of the most common filters and scores; without it numpy computes the same."""
