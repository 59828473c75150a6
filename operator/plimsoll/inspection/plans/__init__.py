"""Plans that policies would make of a cluster: their moves, refusals, effect and allowances."""
