"""Calling plugins: what they raise becomes a PluginError with their name, once, here."""

from types import TracebackType

from plimsoll.framework import MAX_SCORE, MIN_SCORE, IntArray, PluginError


class calling:  # noqa: N801 - it stands in a with statement and reads as a verb
    """Name the plugin in whatever it raises: ``with calling(plugin.name, "filter"): ...``.

    A class, not a generator: this is entered a dozen times a pod.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """

    __slots__ = ("_plugin", "_point")

    def __init__(self, plugin: str, point: str) -> None:
        self._plugin = plugin
        self._point = point

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(raised, Exception) and not isinstance(raised, PluginError):
            raise PluginError(self._plugin, self._point, f"{type(raised).__name__}: {raised}") from raised


def checked(values: IntArray, length: int, plugin: str, point: str) -> IntArray:
    """The array a plugin returned, if it has one entry for each node.

    Raises:
        PluginError: Another shape or dtype.
    """
    if values.shape != (length,) or values.dtype.kind not in "iu":
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
