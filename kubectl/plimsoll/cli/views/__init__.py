"""Lays out answers for people; one module per command."""
