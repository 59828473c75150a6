"""Reads usage of nodes and pods: from the metrics API of the cluster, and from Prometheus."""
