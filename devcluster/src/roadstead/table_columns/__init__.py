"""Defines the columns that ``kubectl get`` prints for built-in kinds."""
