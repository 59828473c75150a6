"""Plans moves that are proven on a fork of the cluster."""
