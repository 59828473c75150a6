"""Code shared by several plugins or strategies, not part of the API for plugin authors."""
