"""Serves custom resources: their definitions, schemas and validation rules in CEL."""
