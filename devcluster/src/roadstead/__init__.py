"""Serves a Kubernetes 1.36 API with controllers and kubelets on loopback, for tests, demos and benchmarks.

Real HTTP, all state in memory, one asyncio process; compared with recordings of a real API server.

Read in this order: ``values.resources`` (the served resources), ``store.store`` (objects and their history),
``values.status_errors`` (errors), ``kinds`` (the behaviour of each kind), ``store.api`` (the one
write path), ``server`` (HTTP), ``cluster`` (all of it together).
"""

__version__ = "0.1.0"
