"""Describes and checks field values: types, quantities, times, schemas of custom resources."""
