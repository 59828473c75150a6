"""Checks the metadata and the fields that many kinds share."""
