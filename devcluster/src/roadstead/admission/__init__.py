"""Completes and rejects objects by other objects of their namespace: LimitRange and ResourceQuota."""
