"""Describes the served API: discovery documents and OpenAPI."""
