"""Manifests, and the pods that controllers and the API server would make of them."""
