"""Serves the alpha API lifecycle.k8s.io of Kubernetes 1.37: evictions by request."""
