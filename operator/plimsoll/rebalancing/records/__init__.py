"""Eviction records."""
