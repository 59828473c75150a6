"""Holds values that every other package uses: resources, label selectors, errors."""
