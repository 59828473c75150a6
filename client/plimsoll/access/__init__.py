"""The rights of the operator: those that policies need, and their review by the API server."""
