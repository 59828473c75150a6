"""Code shared by strategies: usage of nodes, eviction order, node fit, spreading."""
