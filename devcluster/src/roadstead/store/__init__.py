"""Stores objects and their history; all writes go through one path."""
