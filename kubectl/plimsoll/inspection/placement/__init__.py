"""Places pods on forks of a cluster, and reports whether they fit."""
