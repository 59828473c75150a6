"""Reasons that keep policies from moving pods: stop button, pauses, failing strategies, hanging plans.

A policy rests after fruitless moves, and while pods wait that have lost their places. The button and rest are
ceilings on the evictions of a run, beside the budgets that the policy has itself: what they forbid is refused
with their name, in a plan and right before each eviction.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import PluginError
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.watch_event import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.model.kinds.workload import Namespace
from plimsoll.planning.history import Memory
from plimsoll.planning.limits import Ceiling
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.rebalancing.breakers.displacement import DisplacementBreaker
from plimsoll.rebalancing.plan_runner import PlanRunner
from plimsoll.rebalancing.run_result import RunResult
from plimsoll.rebalancing.run_status import sentence_of
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: The annotation of the operator's own namespace that stops all moves while its value is "true".
STOP = "plimsoll.dev/stop"

#: Seconds that a plan may take, beyond the longest search that a policy may ask for. The thread of one that
#: takes longer cannot be ended; the other policies go on without it.
PLANNING_S = 900.0

#: Seconds after which a run that makes others be skipped degrades its policy.
OVERDUE_S = 60.0


class StopButton:
    """Stops the moves of all policies, at once.

    Args:
        objects: Where the namespace is looked up; it is watched.
        namespace: The operator's own; "" has no button.
    """

    def __init__(self, objects: ClusterObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace

    @property
    def is_pressed(self) -> bool:
        """Whether nothing may be moved."""
        namespace = self._objects.namespaces.get(self._namespace)
        return namespace is not None and namespace.metadata.annotations.get(STOP) == "true"

    @property
    def sentence(self) -> str:
        """Why nothing is moved."""
        return f'namespace {self._namespace} is annotated {STOP}="true"; until it is removed no pod is moved'

    def heeded(self, rebalancing: RebalancingConfig) -> RebalancingConfig:
        """The same, without any eviction while the button is pressed."""
        return _bounded(rebalancing, STOP, 0) if self.is_pressed else rebalancing


class DegradedReasons:
    """What keeps each policy from moving pods, in sentences for its status.

    Args:
        policies: Those that rebalance, by name, at any moment.
        stop: The button.
        displacements: Pods that have lost their places.
        planning: Knows the plans that hang, and notifies ``changed`` when one of them ends.
        clock: Time.
        observer: Notified of statuses that could not be written.
        changed: Wakes ``watch``.
        conditions: Notified when the sentences about a policy have changed.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        stop: StopButton,
        displacements: DisplacementBreaker,
        planning: PlanRunner,
        clock: Clock,
        observer: Observer,
        changed: Signal,
        conditions: Signal,
    ) -> None:
        self._changed = changed
        self._conditions = conditions
        self._policies = policies
        self._stop = stop
        self._displacements = displacements
        self._planning = planning
        self._clock = clock
        self._observer = observer
        self._known: dict[str, dict[str, str]] = {}
        self._broken: dict[str, str] = {}  #: what broke the latest run, by policy
        self._begun: dict[str, float] = {}  #: when the run under way began, by policy
        self._skipped: set[str] = set()  #: policies whose next run was due before that had ended

    def of(self, name: str) -> Mapping[str, str]:
        """Sentences by reason."""
        stopped = {"Stopped": self._stop.sentence} if self._stop.is_pressed and name in self._policies else {}
        return stopped | self._of_runs(name) | self._known.get(name, {})

    def _of_runs(self, name: str) -> dict[str, str]:
        """What is wrong with the runs themselves."""
        found = {}
        if self._planning.is_hanging(name):
            found["Hanging"] = (
                f"a strategy or plugin did not end within {PLANNING_S:.0f} s and still runs; the policy runs"
                " again when it ends, within the hour, or when its spec is changed; a restart of the operator"
                " ends it"
            )
        if self._broken.get(name):
            found["RunFailed"] = (
                f"the latest run broke off: {self._broken[name]}; the next one is tried as scheduled"
            )
        if self._is_overdue(name):
            found["RunOverdue"] = (
                f"a run has not ended for more than {OVERDUE_S:.0f} s, and runs that were due were skipped"
            )
        return found

    def _is_overdue(self, name: str) -> bool:
        due = self._begun.get(name, math.inf) + OVERDUE_S
        return name in self._skipped and self._clock.monotonic() >= due

    def _next_overdue_s(self) -> float | None:
        """Seconds until the next run under way is overdue; None when none will be."""
        now = self._clock.monotonic()
        due = (began + OVERDUE_S - now for name, began in self._begun.items() if name in self._skipped)
        return min((seconds for seconds in due if seconds > 0), default=None)

    def observe(self, event: WatchEvent) -> None:
        """Look at the button again when a namespace has changed."""
        match event:
            case ObjectAdded(Namespace()) | ObjectUpdated(_, Namespace()) | ObjectDeleted(Namespace()):
                self._changed.notify()

    def forget(self, name: str) -> None:
        """The policy rebalances no more."""
        self._known.pop(name, None)
        self._broken.pop(name, None)
        self._planning.forget(name)

    def run_begun(self, name: str) -> None:
        """A run is under way."""
        self._begun[name] = self._clock.monotonic()

    def run_skipped(self, name: str) -> None:
        """A run was due while the one before it was under way."""
        self._skipped.add(name)
        self._changed.notify()

    def run_ended(self, name: str, result: RunResult, problem: str) -> None:
        """A run has ended; ``problem`` is what broke it."""
        before = self._of_runs(name)
        self._begun.pop(name, None)
        self._skipped.discard(name)
        if result is not RunResult.SKIPPED:
            is_hanging = result is RunResult.TIMED_OUT and self._planning.is_hanging(name)
            self._broken[name] = "" if is_hanging else problem
        if self._of_runs(name) != before:
            self._conditions.notify()

    def look_back(
        self, name: str, memory: Memory, failures: Iterable[PluginError] = (), forbidden: str = ""
    ) -> None:
        """Tell when moves keep failing or strategies fail, and when they do so no longer.

        Args:
            name: Of the policy.
            memory: What past moves teach.
            failures: Of its strategies.
            forbidden: What right its surges miss, in a sentence.
        """
        found: dict[str, str] = {}
        resting, _ = memory.rest(name)
        if resting:
            found["Resting"] = resting
        displaced = self._displacements.sentence(name)
        if displaced:
            found["PodsDisplaced"] = displaced
        suspended = memory.suspended(name)
        if suspended:
            found["StrategySuspended"] = "; ".join(suspended)
        failed = {sentence_of(each) for each in failures}
        if failed:
            found["StrategyFailed"] = "; ".join(sorted(failed))
        if forbidden:
            found["SurgeForbidden"] = forbidden
        if found != self._known.get(name, {}):
            self._known[name] = found
            self._conditions.notify()

    async def watch(self) -> None:
        """Tell when the button is pressed or released, and when runs hang or end, until cancelled."""
        before: tuple[bool, Mapping[str, Mapping[str, str]]] = (False, {})
        while True:
            seen = self._changed.count
            if self._seen() != before:
                before = self._seen()
                self._conditions.notify()
            due_s = self._next_overdue_s()
            if due_s is None:
                await self._changed.wait(seen)
            else:
                await first_of(self._changed.wait(seen), self._clock.sleep(due_s))

    def _seen(self) -> tuple[bool, Mapping[str, Mapping[str, str]]]:
        found = {name: self._of_runs(name) for name in self._policies}
        return self._stop.is_pressed, {name: said for name, said in found.items() if said}


def undisturbed(
    rebalancing: RebalancingConfig, displacements: DisplacementBreaker, name: str
) -> RebalancingConfig:
    """The same, without any eviction while pods wait that have lost their places."""
    return (
        _bounded(rebalancing, "rest until displaced pods have a place", 0)
        if displacements.sentence(name)
        else rebalancing
    )


def barred(rebalancing: RebalancingConfig, name: str) -> RebalancingConfig:
    """The same, without any eviction; ``name`` is told as the budget that allows none."""
    return _bounded(rebalancing, name, 0)


def rested(rebalancing: RebalancingConfig, memory: Memory, name: str) -> RebalancingConfig:
    """The same for a policy whose moves keep failing: it moves none for a while, then one."""
    resting, may_try = memory.rest(name)
    return _bounded(rebalancing, "rest after fruitless moves", int(may_try)) if resting else rebalancing


def _bounded(rebalancing: RebalancingConfig, name: str, most: int) -> RebalancingConfig:
    budgets = (*rebalancing.limits.budgets, (name, Ceiling(count=most)))
    return replace(rebalancing, limits=replace(rebalancing.limits, budgets=budgets))
