"""Decides moves, without effects."""
