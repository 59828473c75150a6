"""Answers questions about a cluster on a copy of it; writes nothing and calls no server."""
