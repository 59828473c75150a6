"""Calls plugins for attempts: counts, times and bounds the calls, and has the answers judged.

:mod:`plimsoll.framework.plugin_answers` judges; nothing else of the package
does. The cancellation of an awaited call is not the plugin's.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from plimsoll.framework import (
    MAX_SCORE,
    CycleState,
    IntArray,
    Nomination,
    PluginError,
    PodInfo,
    PostFilterPlugin,
    ScorePlugin,
    Snapshot,
)
from plimsoll.framework.extension_points import MIN_SCORE
from plimsoll.framework.plugin_answers import checked, named, of_kind, shown
from plimsoll.framework.status import SKIP, SUCCESS, Status
from plimsoll.model.columns.cluster import Cluster

#: Seconds of processor time that an attempt may take.
BUDGET_S = 2.0

#: The same of the members of a PodGroup, which are decided in one step.
GANG_BUDGET_S = 10.0

#: Receives a timed call: plugin, extension point, whether it raised, seconds.
Timed = Callable[[str, str, bool, float], None]


class OverBudgetError(PluginError):
    """An attempt has taken too much processor time; it has ended before this call of a plugin."""

    def __init__(self, plugin: str = "", point: str = "", most_s: float = BUDGET_S) -> None:
        super().__init__(plugin, point, "not called")
        self.most_s = most_s

    def __str__(self) -> str:
        """The pod's condition."""
        where = f" before {self.point} plugin {self.plugin}" if self.plugin else ""
        return (
            f"given up{where}: the attempt took more than {self.most_s:g} s of processor time; "
            "other pods go first, and this one is tried again after a minute or more"
        )


class AttemptBudget:
    """Bounds the processor time of attempts, one at a time.

    Another thread looks from time to time, and notes the attempt that has taken too much
    (:mod:`plimsoll.app.machine.attempt_watch`). The attempt ends before its next call of a plugin, like one
    whose plugin fails: nothing is interrupted.

    Attributes:
        attempt: The number of the attempt under way; 0 between attempts.
        most_s: Seconds of processor time that it may take.
        spent: The number of the latest attempt that has taken too much.
        subject: The uid of the latest attempt's pod.
        used_s: Seconds that the attempt under way took before it waited for others; 0 for most attempts.
    """

    __slots__ = ("__weakref__", "_attempts", "attempt", "most_s", "spent", "subject", "used_s")

    def __init__(self) -> None:
        self._attempts = self.attempt = 0
        self.most_s = BUDGET_S
        self.spent = -1
        self.subject = ""
        self.used_s = 0.0

    def begin(self, uid: str, most_s: float = BUDGET_S) -> None:
        """Begin the attempt of this pod."""
        self.subject = uid
        self.most_s = most_s
        self.attempt = self._attempts = self._attempts + 1

    def end(self) -> None:
        """End the attempt."""
        self.attempt = 0

    @contextmanager
    def part(self, uid: str, used_s: float) -> Iterator[None]:
        """One part of an attempt that waits for others between its parts, and has taken ``used_s`` so far."""
        self.used_s = used_s
        self.begin(uid)
        try:
            yield
        finally:
            self.end()
            self.used_s = 0.0

    def under_way(self) -> tuple[int, str]:
        """The number and the pod's uid of the attempt under way, for other threads; 0 for none."""
        return self.attempt, self.subject

    @property
    def was_spent(self) -> bool:
        """Whether the latest attempt has taken too much."""
        return self.spent == self._attempts


#: For calls outside of attempts.
UNBOUNDED = AttemptBudget()


class PluginCalls:
    """Counts the plugin calls of one profile; times those of the attempt that it is created for.

    Args:
        counts: Calls by plugin and extension point, shared by all attempts of the profile.
        clock: Returns monotonic seconds; None: count only.
        timed: Receives each call if there is a clock.
        budget: Bounds the attempts.
    """

    __slots__ = ("budget", "clock", "counts", "timed")

    def __init__(
        self,
        counts: defaultdict[tuple[str, str], int],
        clock: Callable[[], float] | None = None,
        timed: Timed | None = None,
        budget: AttemptBudget = UNBOUNDED,
    ) -> None:
        self.budget = budget
        self.counts = counts
        self.clock = clock
        self.timed = timed


#: Meters the calls of the present context: a binding task belongs to its attempt's context, and a plan that a
#: thread computes meanwhile does not.
METER: ContextVar[PluginCalls | None] = ContextVar("METER", default=None)


def check_budget() -> None:
    """Give up if the attempt under way has taken too much; for long work between calls of plugins.

    Raises:
        OverBudgetError: It has.
    """
    calls = METER.get()
    if calls is not None and calls.budget.spent == calls.budget.attempt:
        raise OverBudgetError(most_s=calls.budget.most_s)


class calling:  # noqa: N801 - it stands in a with statement and reads as a verb
    """Attribute exceptions to the plugin: ``with calling(plugin.name, "filter"): ...``.

    A class, not a generator: a dozen are entered per pod.

    Args:
        plugin: Its name.
        point: The extension point, spelled as in a profile.
        ours: Exceptions that are not the plugin's: those that end an awaited call from outside.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """

    __slots__ = ("_began", "_calls", "_ours", "_plugin", "_point")

    def __init__(self, plugin: str, point: str, ours: tuple[type[BaseException], ...] = ()) -> None:
        self._plugin = plugin
        self._point = point
        self._ours: tuple[type[BaseException], ...] = (PluginError, *ours)

    def __enter__(self) -> None:
        calls = self._calls = METER.get()
        if calls is not None:
            if calls.budget.spent == calls.budget.attempt:
                raise OverBudgetError(self._plugin, self._point, calls.budget.most_s)
            calls.counts[self._plugin, self._point] += 1
            if calls.clock is not None:
                self._began = calls.clock()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        calls = self._calls
        if calls is not None and calls.clock is not None and calls.timed is not None:
            calls.timed(self._plugin, self._point, raised is not None, calls.clock() - self._began)
        if raised is not None and not isinstance(raised, self._ours):
            raise named(self._plugin, self._point, raised) from raised


def metered(plugin: str, point: str, seconds: float) -> None:
    """Count a call that was made for several pods together; time it if the attempt's calls are timed."""
    calls = METER.get()
    if calls is not None:
        calls.counts[plugin, point] += 1
        if calls.clock is not None and calls.timed is not None:
            calls.timed(plugin, point, False, seconds)  # noqa: FBT003 - the hook's signature


AnswerT = TypeVar("AnswerT")

#: The form of sort keys that are numbers.
NUMBER = "number"


def called(plugin: str, point: str, function: Callable[..., AnswerT], *args: object) -> AnswerT:
    """Call a plugin's function as in ``calling``; cheaper, for calls that happen for almost every pod.

    Raises:
        PluginError: Chained to the plugin's own exception.
    """
    calls = METER.get()
    if calls is not None:
        if calls.budget.spent == calls.budget.attempt:
            raise OverBudgetError(plugin, point, calls.budget.most_s)
        if calls.clock is not None:
            with calling(plugin, point):
                return function(*args)
        calls.counts[plugin, point] += 1
    try:
        return function(*args)
    except PluginError:
        raise
    except BaseException as exc:
        raise named(plugin, point, exc) from exc


def answered(plugin: str, point: str, function: Callable[..., Status], *args: object) -> Status:
    """The status that a plugin's function returns; the same errors as ``called``, and one for no Status."""
    status = called(plugin, point, function, *args)
    return status if status is SUCCESS or status is SKIP else of_kind(status, Status, plugin, point)


def nominated(source: PostFilterPlugin, cluster: Cluster, *args: Any) -> Nomination:
    """PostFilter's answer; PluginError for parts of wrong types, a node or a victim that there is not."""
    plugin = source.name
    answer = of_kind(
        called(plugin, "postFilter", source.post_filter, *args), Nomination, plugin, "postFilter"
    )
    of_kind(answer.status, Status, plugin, "postFilter")
    if answer.node and answer.node not in cluster.rows:
        raise PluginError(plugin, "postFilter", f"nominated {shown(answer.node)}, and there is no such node")
    for pods in (answer.victims, answer.outranked):
        for pod in of_kind(pods, tuple, plugin, "postFilter"):
            of_kind(pod, PodInfo, plugin, "postFilter")
    for pod in answer.victims:
        if pod.uid not in cluster.pods:
            raise PluginError(plugin, "postFilter", f"named the victim {pod.key}, which is on no node")
    return answer


def sortable(key: object, plugin: str, like: object = None) -> object:
    """The form of a sort key: a number other than NaN, a text, or a tuple of these.

    Raises:
        PluginError: It is something else, or cannot be compared with keys of the form ``like`` (None: any).
    """
    form = _form_of(key)
    if form is None:
        problem = f"returned {shown(key)}; expected a number other than NaN, a text, or a tuple of these"
        raise PluginError(plugin, "queueSort", problem)
    if like is not None and form != like:
        problem = f"returned {shown(key)}, which cannot be compared with the key of an earlier pod"
        raise PluginError(plugin, "queueSort", problem)
    return form


def _form_of(key: object) -> object:
    """Equal for keys that can be compared; None for one that cannot."""
    if isinstance(key, tuple):
        forms = tuple([_form_of(each) for each in key])
        return None if None in forms else forms
    if isinstance(key, int | float | np.integer | np.floating):
        return None if key != key else NUMBER  # noqa: PLR0124 - only NaN differs from itself
    return "text" if isinstance(key, str) else None


def asked(plugin: ScorePlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> IntArray:
    """The plugin's raw scores of the snapshot's nodes, shape (N,)."""
    scores = called(plugin.name, "score", plugin.score, state, pod, snapshot)
    return checked(scores, len(snapshot), plugin.name, "score").astype(np.int64, copy=False)


def replaced(calls: Sequence[tuple[str, str]], function: Callable[..., AnswerT], *args: object) -> AnswerT:
    """Call a function of the kernel in place of plugins (name, extension point).

    The plugins' calls are counted. In an attempt whose calls are timed, each has an equal share of the time.
    """
    meter = METER.get()
    if meter is None:
        return function(*args)
    for call in calls:
        meter.counts[call] += 1
    if meter.clock is None or meter.timed is None:
        return function(*args)
    began = meter.clock()
    answer = function(*args)
    seconds = (meter.clock() - began) / len(calls)
    for plugin, point in calls:
        meter.timed(plugin, point, False, seconds)  # noqa: FBT003 - the hook's signature
    return answer


def are_any(values: IntArray) -> bool:
    """Whether some value is not 0; cheaper than numpy's ``any`` for a short array."""
    return bool(values.size) and bool(values.item(values.argmax()) or values.item(values.argmin()))


def in_range(scores: IntArray, plugin: str) -> IntArray:
    """Points; PluginError unless all lie in 0..100."""
    if len(scores) and (scores.min() < MIN_SCORE or scores.max() > MAX_SCORE):
        worst = scores.min() if scores.min() < MIN_SCORE else scores.max()
        raise PluginError(plugin, "score", f"returned {worst}; scores lie in {MIN_SCORE}..{MAX_SCORE}")
    return scores
