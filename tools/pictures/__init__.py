"""Pictures of the documentation, drawn from a small source."""
