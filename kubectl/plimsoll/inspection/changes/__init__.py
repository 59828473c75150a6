"""Applies changes to a fork of the cluster, for what-if questions."""
