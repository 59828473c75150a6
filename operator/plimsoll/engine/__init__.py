"""Pure functions over a snapshot: where a pod goes, who makes room, what moves."""
