"""Requests to extenders, and the effects of their responses."""
