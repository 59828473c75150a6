"""Reports past moves from Eviction records: reasons, outcomes, repeats and a digest."""
