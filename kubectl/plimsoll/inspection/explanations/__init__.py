"""Explains pending pods, placed pods and nodes."""
