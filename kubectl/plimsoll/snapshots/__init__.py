"""Reads and writes the state of a cluster as documents, from a server, a file or dumps of kubectl."""
