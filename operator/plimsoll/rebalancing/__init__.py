"""Keeps pods well placed: runs of policies, and the moves that they decide."""
