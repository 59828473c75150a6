"""Builds the documentation site from the Markdown of this repository (ADR 37)."""
