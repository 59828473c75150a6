"""Lists and watches of the API server, as batches of events for the mirrored cluster."""
