"""Reads usage of nodes and pods from the cluster's metrics API and from Prometheus."""
