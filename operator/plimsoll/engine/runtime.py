"""Calling plugins: what they raise becomes a PluginError with their name, once, here."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from plimsoll.framework import MAX_SCORE, MIN_SCORE, IntArray, PluginError


@contextmanager
def calling(plugin: str, point: str) -> Iterator[None]:
    """Name the plugin in whatever it raises.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """
    try:
        yield
    except PluginError:
        raise
    except Exception as exc:
        raise PluginError(plugin, point, f"{type(exc).__name__}: {exc}") from exc


def checked(values: IntArray, length: int, plugin: str, point: str) -> IntArray:
    """The array a plugin returned, if it has one entry for each node.

    Raises:
        PluginError: Another shape or dtype.
    """
    if values.shape != (length,) or not np.issubdtype(values.dtype, np.integer):
        raise PluginError(
            plugin, point, f"returned {values.dtype} of shape {values.shape}; expected integers ({length},)"
        )
    return values


def in_range(scores: IntArray, plugin: str) -> IntArray:
    """Scores after normalisation, if all lie in 0..100.

    Raises:
        PluginError: One does not.
    """
    if len(scores) and (scores.min() < MIN_SCORE or scores.max() > MAX_SCORE):
        worst = scores.min() if scores.min() < MIN_SCORE else scores.max()
        raise PluginError(plugin, "score", f"returned {worst}; scores lie in {MIN_SCORE}..{MAX_SCORE}")
    return scores
