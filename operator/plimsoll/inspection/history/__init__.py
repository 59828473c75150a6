"""Past moves by their Eviction records, with reasons, outcomes, repeats and a digest."""
