"""Devices of pods that are bound: waits for them, and claims that are written."""
