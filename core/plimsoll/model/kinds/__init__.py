"""Facts of one object: pods, nodes, volumes, workloads."""
