"""A server whose answers a test scripts."""

from kube.conftest import told

__all__ = ["told"]
