"""Decides what measured load means for moves: nodes that would become hot, and when a pod rests."""
