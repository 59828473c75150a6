"""Places pods on forks of a cluster, and says whether they fit."""
