"""Requests to servers that a policy names: HTTP extenders and Prometheus; their responses are not trusted."""
