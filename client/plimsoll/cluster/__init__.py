"""The mirrored cluster: one writer, many readers."""
