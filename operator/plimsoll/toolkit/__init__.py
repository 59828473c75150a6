"""What several plugins or strategies share and authors need not know."""
