"""Facts of all objects, one array a fact."""
