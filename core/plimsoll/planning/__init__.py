"""Decides moves, without side effects."""
