"""Shared by strategies."""
