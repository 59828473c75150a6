"""Makes the plans of policies for a cluster: moves, refusals, effect and allowances."""
