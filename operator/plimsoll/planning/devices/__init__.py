"""Devices in plans: they follow the pods of a fork, and pods that share some move together."""
