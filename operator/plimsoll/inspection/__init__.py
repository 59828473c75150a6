"""Inspection: answers about a cluster on a copy of it; nothing here writes, or asks a server."""
