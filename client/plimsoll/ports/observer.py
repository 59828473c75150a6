"""Hooks for everything that happens; metrics and logs implement them, and the core does not know those.

Every hook does nothing unless overridden, and must not fail.
"""

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any


class Observer:
    """The hooks, in the order of a pod's life."""

    def watch_failed(self, resource: str, problem: str, status: int = 0) -> None:
        """A list or watch failed; it is retried."""

    def watch_recovered(self, resource: str) -> None:
        """A resource that could not be read can be read again."""

    def watch_listed(self, resource: str, objects: int) -> None:
        """A list is complete."""

    def watch_heard(self, resource: str, now: float) -> None:
        """The API server responded for a resource: to a list or a watch, or with an event or a bookmark.

        ``now`` is in seconds since the epoch.
        """

    def request_answered(self, method: str, status: int, seconds: float) -> None:
        """A response arrived, or a watch was opened; status 0 when no response came."""

    def batch_taken_in(self, resource: str, events: int, seconds: float) -> None:
        """The events of a list or watch were applied."""

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        """An object, or a part of it, cannot be read, and is treated as absent."""

    def pod_queued(self, queue: str, event: str) -> None:
        """A pod entered a queue (active, backoff, unschedulable or gated) because of ``event``."""

    def event_handled(self, event: str, seconds: float) -> None:
        """The pods that a cluster event may help were requeued."""

    def claim_created(self, status: str) -> None:
        """A claim for extended resources was created, or its creation failed: ``success`` or ``failure``."""

    def devices_awaited(self, profile: str, driver: str, status: str, seconds: float) -> None:
        """A driver prepared devices of a claim, or did not: ``success``, ``failure`` or ``timeout``."""

    def devices_contested(self, profile: str) -> None:
        """A pod was not bound because another scheduler allocated one of its devices first."""

    def bound_after_flush(self) -> None:
        """A pod was bound that no event had requeued; it was flushed after five minutes."""

    def hint_asked(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A plugin's queueing hint returned Queue, QueueSkip or Error."""

    def cycle_ended(self, seconds: float) -> None:
        """A scheduling cycle has found a node."""

    def attempt_ended(self, profile: str, result: str, seconds: float) -> None:
        """An attempt ended, binding included: scheduled, unschedulable or error."""

    def plugin_called(self, plugin: str, point: str, failed: bool, seconds: float) -> None:
        """A plugin was called, in an attempt that is timed."""

    def point_passed(self, profile: str, point: str, failed: bool, seconds: float) -> None:
        """An extension point was run, in an attempt that is timed."""

    def plugin_failed(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        """A plugin raised or broke a rule; ``trace`` is where it raised."""

    def plugin_slow(self, plugin: str, point: str, seconds: float) -> None:
        """Several calls of a plugin in a row have held up all pods."""

    def permit_waited(self, result: str, seconds: float) -> None:
        """A pod that permit plugins held was released or rejected; ``result`` is the status code."""

    def pod_bound(self, attempts: int, seconds: float) -> None:
        """A pod was bound, ``seconds`` after it entered the queue."""

    def binding_failed(self, profile: str, verdict: str, message: str) -> None:
        """The API server rejected a binding."""

    def pod_refused(
        self, profile: str, reason: str, *, pod: str, node: str, decision: str, after_s: float | None
    ) -> None:
        """A kubelet rejected a pod of ours, ``after_s`` seconds after this process bound it."""

    def extender_asked(self, extender: str, point: str, result: str, seconds: float, problem: str) -> None:
        """An extender was called (success or error), or skipped because it has failed too often."""

    def placement_told(self, decision: str, step: str, facts: Mapping[str, object]) -> None:
        """A step of a placement; ``decision`` is the pod's uid, because a pod is bound once at most."""

    def move_told(self, decision: str, step: str, facts: Mapping[str, object]) -> None:
        """A step of a move: a phase; ``decision`` is the record's key, ``namespace/name``."""

    def preempted(self, victims: int) -> None:
        """Preemption made room for a pod."""

    def run_ended(self, policy: str, considered: int, planned: int, refused: Mapping[str, int]) -> None:
        """A rebalancing run has made its plan; all counts are of pods, ``refused`` by reason."""

    def run_finished(self, policy: str, result: str, seconds: float) -> None:
        """A rebalancing run ended (succeeded, failed, crashed, timed_out) or was skipped."""

    def strategy_ended(self, policy: str, strategy: str, seconds: float) -> None:
        """A strategy ran in a plan; ``seconds`` include the verdicts on its candidates."""

    def record_changed(self, policy: str, strategy: str, phase: str) -> None:
        """An Eviction record reached a phase."""

    def move_reversed(self, policy: str) -> None:
        """A move put a pod on a node from which a pod of the same owner was moved within the hour before."""

    def forecast_placed(self, policy: str, landing: str) -> None:
        """Another scheduler placed a replacement: on the expected node, an equal one, or another."""

    def usage_asked(self, source: str, result: str) -> None:
        """Usage was requested from the metrics API or a Prometheus: answered, refused or unanswered."""

    def usage_read(self, source: str, ages: Sequence[float]) -> None:
        """Usage of nodes was read from the metrics API or a Prometheus; ``ages`` are in seconds."""

    def forecast_checked(self, resource: str, error: float) -> None:
        """The usage of a moved pod was measured; ``error`` is the deviation as a share of the expectation."""

    def record_dropped(self, policy: str, why: str) -> None:
        """A record was not written, or was deleted by retention."""

    def records_exported(self, count: int, result: str, problem: str = "") -> None:
        """Records were exported, were not (failed, tried again), or were lost."""

    def notice_ended(self, result: str, problem: str = "") -> None:
        """A notice was sent, could not be (failed), or was dropped from a full queue."""

    def object_noted(self, kind: str, name: str, reason: str, text: str, *, is_warning: bool) -> None:
        """An event was recorded on an object that is not a pod's, such as a policy."""

    def leadership_changed(self, name: str, *, is_leading: bool) -> None:
        """This process became the leader by a lease, or became a standby."""

    def leader_seen(self, name: str, holder: str) -> None:
        """A lease has a new holder, possibly this process; "" when it is free."""

    def renewal_delayed(self, name: str, late_s: float, why: str) -> None:
        """The lease was renewed ``late_s`` seconds later than planned, or is not renewed yet."""

    def loop_lagged(self, loop: str, seconds: float) -> None:
        """An event loop ran a timer ``seconds`` after it was due."""

    def failed(self, where: str, problem: str) -> None:
        """An internal error occurred and was contained."""


def told_to_all(observers: Sequence[Observer]) -> Observer:
    """An observer that forwards every hook to all observers, in order."""

    class _Fanout(Observer):
        pass

    def passing(name: str) -> Any:
        hooks = [
            getattr(observer, name)
            for observer in observers
            if getattr(type(observer), name) is not getattr(Observer, name)
        ]

        if len(hooks) == 1:
            return staticmethod(hooks[0])  # saves a call

        @functools.wraps(getattr(Observer, name))
        def hook(_: Observer, *args: Any, **named: Any) -> None:
            for each in hooks:
                each(*args, **named)

        return hook

    for name, _ in inspect.getmembers(Observer, inspect.isfunction):
        if not name.startswith("_"):
            setattr(_Fanout, name, passing(name))
    return _Fanout()
