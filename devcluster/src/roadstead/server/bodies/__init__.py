"""Forms of requests and answers: JSON, YAML, Protocol Buffers."""
