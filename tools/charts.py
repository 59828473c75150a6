"""pygal without the finder of maps that it adds, of a kind that makes every later import warn."""

import sys

import pygal

__all__ = ["pygal"]

sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, pygal.PluginImportFixer)]
