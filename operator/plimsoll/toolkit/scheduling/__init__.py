"""Shared by plugins of the scheduler."""
