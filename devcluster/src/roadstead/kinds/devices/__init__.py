"""Kinds of resource.k8s.io: devices of nodes, classes of them, and claims on them."""
