"""Reads measured use of nodes and pods, from the metrics API and Prometheus, into the load book."""
