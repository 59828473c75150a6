"""Dynamic resource allocation: selectors of devices."""
