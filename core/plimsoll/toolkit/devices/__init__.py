"""Searches by strategies for devices: groups of free ones, and pods to move so that devices become free."""
