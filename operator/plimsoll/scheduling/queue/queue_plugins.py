"""Calls plugins for the queue (QueueSort, PreEnqueue, hints) and contains their failures.

:mod:`plimsoll.scheduling.queue.queueing_hints` decides which hints are called, and what follows.

A plugin that raises is named and counted, and affects only the pods it judges. A pod without a sort key goes
last, a failing gate holds its pod, and a failing hint wakes it.

One queue serves all profiles, so all have the same QueueSort plugin with the same arguments, as in
kube-scheduler; :mod:`plimsoll.policy_controller.controller` enforces it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from plimsoll.engine.plugin_calls import answered, called, calling, sortable
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SUCCESS,
    ClusterEvent,
    Hint,
    PluginError,
    Pod,
    PodInfo,
    PreEnqueuePlugin,
    QueueingHint,
    QueueSortPlugin,
    Snapshot,
    Status,
    error,
)
from plimsoll.framework.capabilities import GatesByObjects
from plimsoll.framework.columns import Cluster
from plimsoll.framework.plugin_answers import of_kind
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.scheduling.queue.queueing_hints import QueueingHints, hints_of


class QueueGate(Protocol):
    """Gates pods that no PreEnqueue plugin gates."""

    def gate(self, pod: PodInfo) -> Status:
        """Success for a pod that may be tried."""

    def release(self, pod: Pod) -> None:
        """Forget a pod that is no longer served or has another gate; a later rejection is reported again."""


class QueuePlugins:
    """Calls the queue's plugins of the served profiles; runs the gates if no plugin rejects."""

    def __init__(
        self,
        default_sort: QueueSortPlugin,
        clock: Clock,
        observer: Observer,
        gates: Sequence[QueueGate] = (),
        cluster: Cluster | None = None,
    ) -> None:
        self._default_sort = default_sort
        self._sort = default_sort
        self._clock = clock
        self._observer = observer
        self._gates = tuple(gates)
        self._cluster = Cluster() if cluster is None else cluster
        self._form: object = None  #: of the sort plugin's first key: all others must be comparable with it
        self._schedulers: Mapping[str, ProfileScheduler] = {}
        self._gating: dict[str, list[tuple[PreEnqueuePlugin, bool]]] = {}  #: whether one reads objects
        self._hints: dict[str, QueueingHints] = {}

    def serve(
        self, schedulers: Mapping[str, ProfileScheduler]
    ) -> tuple[Mapping[str, QueueingHints], set[str]]:
        """Use the plugins of these; returns hints by scheduler name, and names whose profile changed."""
        before, self._schedulers = self._schedulers, schedulers
        self._gating = {
            name: [(each, isinstance(each, GatesByObjects)) for each in scheduler.profile.pre_enqueue]
            for name, scheduler in schedulers.items()
        }
        changed = {name for name in {*before, *schedulers} if before.get(name) is not schedulers.get(name)}
        self._hints = {
            name: self._declared(scheduler) if name in changed else self._hints[name]
            for name, scheduler in schedulers.items()
        }
        return self._hints, changed

    def release(self, pod: Pod) -> None:
        """Forget a pod that is no longer served."""
        for gate in self._gates:
            gate.release(pod)

    def sort_by_profiles(self) -> None:
        """Order by the QueueSort plugin of the served profiles; all of them have an equal one."""
        sorts = [each.profile.queue_sort for each in self._schedulers.values()]
        self._sort = next(iter(sorts), self._default_sort)
        self._form = None

    def sort_key(self, pod: PodInfo, since: float) -> tuple[int, Any]:
        """The key of a pod that waits since ``since``; lower goes first, a pod without a key last, by age."""
        try:
            key = called(self._sort.name, "queueSort", self._sort.sort_key, pod, since)
            self._form = sortable(key, self._sort.name, self._form)
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
            return (1, since)
        return (0, key)

    def gate(self, pod: PodInfo, first: str = "") -> Status:
        """The first rejection by PreEnqueue plugins and gates; the plugin named ``first`` runs first."""
        plugins = self._gating.get(pod.pod.spec.scheduler_name)
        if plugins is None:
            return SUCCESS
        for plugin, reads in sorted(plugins, key=lambda each: each[0].name != first) if first else plugins:
            status = self._pre_enqueue(plugin, pod, reads=reads)
            if not status.is_success:
                return status
        for number, gate in enumerate(self._gates):
            status = gate.gate(pod)
            if not status.is_success:
                for later in self._gates[number + 1 :]:
                    later.release(pod.pod)  # the pod reports this one; the others report when they gate it
                return status
        return SUCCESS

    def _pre_enqueue(self, plugin: Any, pod: PodInfo, *, reads: bool) -> Status:
        try:
            if reads:
                snapshot = Snapshot(self._cluster)
                status = answered(plugin.name, "preEnqueue", plugin.pre_enqueue_on, pod, snapshot)
            else:
                status = answered(plugin.name, "preEnqueue", plugin.pre_enqueue, pod)
            return status.by(plugin.name)
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
            return error(str(exc)).by(exc.plugin)

    def hint(self, plugin: str, hint: Hint, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
        """Call one hint; if it raises or returns a wrong type, the event may help."""
        began = self._clock.monotonic()
        try:
            answer = of_kind(
                called(plugin, "queueingHint", hint, pod, change), QueueingHint, plugin, "queueingHint"
            )
            said = answer.value
        except PluginError as exc:
            self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
            answer, said = QueueingHint.QUEUE, "Error"
        self._observer.hint_asked(plugin, change.label, said, self._clock.monotonic() - began)
        return answer

    def _declared(self, scheduler: ProfileScheduler) -> QueueingHints:
        """The registrations of a profile; any event may help if an extender or a silent plugin rejected."""
        plugins = []
        for plugin in scheduler.profile.plugins:
            try:
                with calling(plugin.name, "eventsToRegister"):
                    hints_of([plugin])
                plugins.append(plugin)
            except PluginError as exc:
                self._observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
        whole = len(plugins) == len(scheduler.profile.plugins) and not scheduler.profile.extenders
        return hints_of(plugins, has_undeclared=not whole)
