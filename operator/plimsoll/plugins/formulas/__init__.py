"""Arithmetic of plugins on columns: exact, and in as few passes as it takes."""
