"""Simulates nodes and the life of their pods."""
