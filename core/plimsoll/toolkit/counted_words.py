"""Writes numbers of things in the sentences of plugins and strategies."""

from plimsoll.model.counted import counted

__all__ = ["counted"]
