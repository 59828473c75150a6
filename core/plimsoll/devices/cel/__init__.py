"""Selectors of devices in the Common Expression Language (docs/adr/0035): ``selectors`` is the entry."""
