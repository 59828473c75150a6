"""Reads the state that a check judges: contact, state of the cluster, rights."""
