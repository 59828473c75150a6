"""Simulates devices in plans: they follow the pods of a fork, and pods that share claims move together."""
