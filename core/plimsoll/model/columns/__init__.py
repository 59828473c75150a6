"""Facts of all objects as columns: one array per fact."""
