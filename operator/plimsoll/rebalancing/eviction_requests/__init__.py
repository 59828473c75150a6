"""Evictions by EvictionRequest."""
