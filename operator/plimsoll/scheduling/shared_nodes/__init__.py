"""Binds among replicas: each binds to the nodes of its own shares, and requests bindings from the others."""
