"""Changes of a cluster, made on a fork, for what-if questions."""
