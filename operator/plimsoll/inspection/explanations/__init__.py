"""Answers to "why": a pending pod, a running pod, a node."""
