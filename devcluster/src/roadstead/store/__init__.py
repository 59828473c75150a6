"""Keeps the objects and their history, and writes them in one way."""
