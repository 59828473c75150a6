"""Watches kinds that many clusters do not have: devices, VerticalPodAutoscalers."""
