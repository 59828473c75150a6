"""Inspection: answers about a cluster on a copy of it; nothing is written and nobody is asked."""
