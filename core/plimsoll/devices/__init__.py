"""Dynamic resource allocation: resource claims, and the devices of a node that serve them."""
