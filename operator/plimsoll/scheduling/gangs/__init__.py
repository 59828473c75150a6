"""Places the pods of a PodGroup together."""
