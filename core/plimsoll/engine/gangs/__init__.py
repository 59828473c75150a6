"""Decides where the pods of a PodGroup are placed together: on a fork, topology domain by domain."""
