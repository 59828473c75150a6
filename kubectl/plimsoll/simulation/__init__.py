"""Simulates a cluster in virtual time, without an API server."""
