"""Counts plugin calls, and times those of one attempt in ten, as kube-scheduler samples them.

Timing every call would cost more than many of the calls. Timed attempts are chosen at random: where workloads
alternate, every tenth attempt would have the same template again and again.

Source: kube-scheduler v1.36, ``framework/runtime/framework.go`` (``pluginMetricsSamplePercent``).
"""

from collections import defaultdict

from plimsoll.engine.plugin_calls import METER, AttemptBudget, PluginCalls
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.observer import Observer

#: One attempt in this many is timed.
SAMPLED_ONE_IN = 10

#: Seconds of an attempt after which the next one of its profile is timed too.
LONG_S = 0.1


class PluginTimer:
    """Meters the attempts of all profiles.

    Attributes:
        counts: Calls by profile, then by plugin and point.
        budget: Bounds the attempts.
    """

    def __init__(self, clock: Clock, randomness: Randomness, observer: Observer) -> None:
        self.counts: defaultdict[str, defaultdict[tuple[str, str], int]] = defaultdict(
            lambda: defaultdict(int)
        )
        self._clock = clock
        self._randomness = randomness
        self._observer = observer
        self._counters: dict[str, PluginCalls] = {}
        self._slow: set[str] = set()
        self.budget = AttemptBudget()

    def attempt(self, profile: str) -> "_Metered":
        """Meter the calls within this context, and in tasks started within it."""
        points = None
        is_sampled = self._randomness.below(SAMPLED_ONE_IN) == 0
        if is_sampled or profile in self._slow:
            self._slow.discard(profile)
            points = _Points(profile, self._observer)
            calls = PluginCalls(self.counts[profile], self._clock.monotonic, points.add, self.budget)
        else:
            calls = self._counters.get(profile) or self._counters.setdefault(
                profile, PluginCalls(self.counts[profile], budget=self.budget)
            )
        return _Metered(calls, points)

    def ended(self, profile: str, seconds: float) -> None:
        """Have the next attempt of a profile timed after a long one: a plugin may be slow."""
        if seconds > LONG_S:
            self._slow.add(profile)


class _Metered:
    """Sets the meter of one attempt; a class, not a generator, since every attempt enters it."""

    __slots__ = ("_calls", "_outer", "_points")

    def __init__(self, calls: PluginCalls, points: "_Points | None") -> None:
        self._calls = calls
        self._points = points

    def __enter__(self) -> None:
        self._outer = METER.set(self._calls)

    def __exit__(self, *_: object) -> None:
        METER.reset(self._outer)
        if self._points is not None:
            self._points.end_of_cycle()


class _Points:
    """The extension points of one timed attempt.

    In the scheduling cycle the plugins of a point run in turn, so their times add up to one duration. In the
    following binding cycle, each call is one duration.
    """

    def __init__(self, profile: str, observer: Observer) -> None:
        self._profile = profile
        self._observer = observer
        self._seconds: dict[str, float] | None = {}
        self._failed: set[str] = set()

    def add(self, plugin: str, point: str, failed: bool, seconds: float) -> None:
        self._observer.plugin_called(plugin, point, failed, seconds)
        if self._seconds is None:
            self._observer.point_passed(self._profile, point, failed, seconds)
            return
        self._seconds[point] = self._seconds.get(point, 0.0) + seconds
        if failed:
            self._failed.add(point)

    def end_of_cycle(self) -> None:
        for point, seconds in (self._seconds or {}).items():
            self._observer.point_passed(self._profile, point, point in self._failed, seconds)
        self._seconds = None
