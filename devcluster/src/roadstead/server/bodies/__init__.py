"""Encodes and decodes bodies of requests and responses: JSON, YAML, Protocol Buffers."""
