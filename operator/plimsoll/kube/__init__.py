"""The Kubernetes API, one module for each resource."""
