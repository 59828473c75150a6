"""Plimsoll: a Kubernetes scheduler and descheduler in one operator."""

__version__ = "0.1.0"
