"""Searches of strategies for devices: groups of free ones, and pods that leave so that others get them."""
