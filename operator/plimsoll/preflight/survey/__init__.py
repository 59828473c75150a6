"""Asks the API server what a check judges: contact, state of the cluster, rights."""
