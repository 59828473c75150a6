"""Elects one leading replica: election, lease, and the fence around writes."""
