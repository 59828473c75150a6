"""Eviction requests: a policy's pods leave by EvictionRequest, when and how their responders decide."""
