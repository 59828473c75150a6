"""Rights of the operator: those that policies need, and reviews by the API server."""
