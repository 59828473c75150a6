"""The Kubernetes API, one module a resource."""
