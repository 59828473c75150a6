"""Binds, protects and reclaims volumes."""
