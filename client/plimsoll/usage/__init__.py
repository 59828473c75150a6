"""Use of nodes and pods, as the metrics API and Prometheus measure it."""
