"""One object never costs the cluster: the largest objects that an API server accepts, field by field."""
