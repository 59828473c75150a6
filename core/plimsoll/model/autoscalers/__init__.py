"""VerticalPodAutoscalers, and the requests that they give to new pods."""
