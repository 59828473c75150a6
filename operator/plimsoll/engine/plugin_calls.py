"""Calls plugins, attributes their exceptions and counts their calls."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TypeVar

import numpy as np

from plimsoll.framework import (
    MAX_SCORE,
    CycleState,
    IntArray,
    PluginError,
    PodInfo,
    ScorePlugin,
    Snapshot,
)
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.framework.extension_points import MIN_SCORE

#: Receives a timed call: plugin, extension point, whether it raised, seconds.
Timed = Callable[[str, str, bool, float], None]


class PluginCalls:
    """Counts the plugin calls of one profile; times those of the attempt that it is created for.

    Args:
        counts: Calls by plugin and extension point, shared by all attempts of the profile.
        clock: Returns monotonic seconds; None: count only.
        timed: Receives each call if there is a clock.
    """

    __slots__ = ("clock", "counts", "timed")

    def __init__(
        self,
        counts: defaultdict[tuple[str, str], int],
        clock: Callable[[], float] | None = None,
        timed: Timed | None = None,
    ) -> None:
        self.counts = counts
        self.clock = clock
        self.timed = timed


#: Meters the calls of the present context: a binding task belongs to its attempt's context, and a plan that a
#: thread computes meanwhile does not.
METER: ContextVar[PluginCalls | None] = ContextVar("METER", default=None)


class calling:  # noqa: N801 - it stands in a with statement and reads as a verb
    """Attribute exceptions to the plugin: ``with calling(plugin.name, "filter"): ...``.

    A class, not a generator: a dozen are entered per pod.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """

    __slots__ = ("_began", "_calls", "_plugin", "_point")

    def __init__(self, plugin: str, point: str) -> None:
        self._plugin = plugin
        self._point = point

    def __enter__(self) -> None:
        calls = self._calls = METER.get()
        if calls is not None:
            calls.counts[self._plugin, self._point] += 1
            if calls.clock is not None:
                self._began = calls.clock()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        calls = self._calls
        if calls is not None and calls.clock is not None and calls.timed is not None:
            calls.timed(self._plugin, self._point, raised is not None, calls.clock() - self._began)
        if isinstance(raised, Exception) and not isinstance(raised, PluginError):
            raise named(self._plugin, self._point, raised) from raised


AnswerT = TypeVar("AnswerT")


def called(plugin: str, point: str, function: Callable[..., AnswerT], *args: object) -> AnswerT:
    """Call a plugin's function as in ``calling``; cheaper, for calls that happen for almost every pod.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """
    calls = METER.get()
    if calls is not None:
        if calls.clock is not None:
            with calling(plugin, point):
                return function(*args)
        calls.counts[plugin, point] += 1
    try:
        return function(*args)
    except PluginError:
        raise
    except Exception as exc:
        raise named(plugin, point, exc) from exc


def asked(plugin: ScorePlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
    """The plugin's raw scores of the snapshot's nodes, shape (N,)."""
    scores = called(plugin.name, "score", plugin.score, state, pod, snapshot)
    return checked(scores, len(snapshot), plugin.name, "score").astype(np.int64, copy=False)


def counted(calls: Sequence[tuple[str, str]]) -> bool:
    """Count plugin calls (name, extension point) that the kernel replaces.

    Returns whether this attempt's calls are timed; then the plugins must be called, and nothing is counted
    here.
    """
    meter = METER.get()
    if meter is None:
        return False
    if meter.clock is not None:
        return True
    for call in calls:
        meter.counts[call] += 1
    return False


def named(plugin: str, point: str, raised: Exception) -> PluginError:
    """The plugin's exception as an error that names the plugin."""
    kind = "" if isinstance(raised, CannotJudgeError) else f"{type(raised).__name__}: "
    return PluginError(plugin, point, f"{kind}{raised}")


def are_any(values: IntArray) -> bool:
    """Whether some value is not 0; cheaper than numpy's ``any`` for a short array."""
    return bool(values.size) and bool(values.item(values.argmax()) or values.item(values.argmin()))


def checked(values: IntArray, length: int, plugin: str, point: str) -> IntArray:
    """The array that a plugin returned; PluginError unless it has one integer per node."""
    if values.shape != (length,) or values.dtype.kind not in "iu":
        raise PluginError(
            plugin, point, f"returned {values.dtype} of shape {values.shape}; expected integers ({length},)"
        )
    return values


def in_range(scores: IntArray, plugin: str) -> IntArray:
    """Normalized scores; PluginError unless all lie in 0..100."""
    if len(scores) and (scores.min() < MIN_SCORE or scores.max() > MAX_SCORE):
        worst = scores.min() if scores.min() < MIN_SCORE else scores.max()
        raise PluginError(plugin, "score", f"returned {worst}; scores lie in {MIN_SCORE}..{MAX_SCORE}")
    return scores
