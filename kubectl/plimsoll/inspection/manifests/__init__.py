"""Reads manifests, and builds the pods that controllers and the API server would create from them."""
