"""Defines the behaviour of each kind: defaults, checks, allowed updates."""
