"""Evicts pods by EvictionRequest."""
