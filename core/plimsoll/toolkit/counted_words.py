"""Writes numbers of things in the sentences of plugins and strategies."""

from plimsoll.model.counted import agreeing as agreeing
from plimsoll.model.counted import counted as counted
