"""Compiled arithmetic of the commonest filter and scores; without it numpy computes the same."""
