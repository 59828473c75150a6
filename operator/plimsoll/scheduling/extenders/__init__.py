"""HTTP extenders."""
