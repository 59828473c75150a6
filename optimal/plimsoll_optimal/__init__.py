"""Plans moves with an optimiser."""
