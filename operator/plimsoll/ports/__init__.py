"""Protocols of the outside world that the acting halves need, one module a subject."""
