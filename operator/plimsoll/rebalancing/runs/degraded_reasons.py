"""Decides which problems of moves make a policy Degraded: breakers, failing strategies, hanging plans."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.access.rights import LOOK_AT_DEPLOYMENTS, SURGE
from plimsoll.api.schema.conditions import PAUSED
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, WatchEvent
from plimsoll.framework import PluginError
from plimsoll.model.kinds.workload import Namespace
from plimsoll.planning.history import MoveHistory
from plimsoll.planning.load.load_guards import TWO_YARDSTICKS
from plimsoll.policies.run_figures import sentence_of
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.runs import plan_runner
from plimsoll.rebalancing.runs.contested_nodes import ContestedNodes
from plimsoll.rebalancing.runs.inputs import RunInput
from plimsoll.rebalancing.runs.load_conditions import NOT_MEASURED, by_load_conditions
from plimsoll.rebalancing.runs.policy_configs import Breakers
from plimsoll.rebalancing.runs.scope_review import ScopeReviews
from plimsoll.rebalancing.runs.status import RunResult
from plimsoll.rebalancing.ways import SurgeWay
from plimsoll.timing.signal import Signal
from plimsoll.timing.task_sets import first_of

#: The reason of the condition Paused.
STOPPED = "Stopped"

#: Seconds after which a run that causes skipped runs degrades its policy.
OVERDUE_S = 60.0


@dataclass(eq=False)
class DegradedReasons:
    """What keeps each policy from moving pods, as sentences for its status."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    breakers: Breakers  #: the breakers of their moves
    scopes: ScopeReviews  #: the problems of their scopes
    contested: ContestedNodes  #: autoscalers that empty the same nodes
    surges: SurgeWay  #: the right that it lacks
    clock: Clock
    changed: Signal  #: notified by breakers and plans; wakes ``run``
    conditions: Signal  #: notified when the sentences about a policy have changed
    #: of the latest run, by policy
    _known: dict[str, dict[str, str]] = field(default_factory=dict, init=False)
    _broken: dict[str, str] = field(default_factory=dict, init=False)  #: error of the latest run, by policy
    #: when the present run began, by policy
    _begun: dict[str, float] = field(default_factory=dict, init=False)
    #: policies whose next run was due before the present one had ended
    _skipped: set[str] = field(default_factory=set, init=False)

    def of(self, name: str) -> Mapping[str, str]:
        """Sentences by reason."""
        found: dict[str, str] = {}
        if self.breakers.planning.is_hanging(name):
            found["Hanging"] = (
                f"a strategy or plugin did not end within {plan_runner.PLANNING_S:.0f} s and still runs; the"
                " policy runs again when it ends, within the hour, or when its spec is changed; a restart of"
                " the operator ends it"
            )
        if self._broken.get(name):
            found["RunFailed"] = (
                f"the latest run broke off: {self._broken[name]}; the next one is tried as scheduled"
            )
        if name in self._skipped and self.clock.monotonic() >= self._overdue(name):
            found["RunOverdue"] = (
                f"a run has not ended for more than {OVERDUE_S:.0f} s, and runs that were due were skipped"
            )
        return found | self._known.get(name, {}) | self.scopes.troubles(name)

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""
        stop = self.breakers.stop
        found = {**self.scopes.advice(name), **self.contested.advice(name)}
        is_stopped = stop.is_pressed and name in self.policies
        return {PAUSED: (STOPPED, stop.sentence), **found} if is_stopped else found

    def _overdue(self, name: str) -> float:
        """When the present run is overdue, in monotonic seconds."""
        return self._begun.get(name, math.inf) + OVERDUE_S

    def observe(self, event: WatchEvent) -> None:
        """Check the stop button after a namespace has changed."""
        match event:
            case ObjectAdded(Namespace()) | ObjectUpdated(_, Namespace()) | ObjectDeleted(Namespace()):
                self.changed.notify()

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances."""
        self._known.pop(name, None)
        self._broken.pop(name, None)
        self.breakers.planning.forget(name)
        self.spec_changed(name)

    def spec_changed(self, name: str) -> None:
        """Forget the policy's earlier runs."""
        self.breakers.displacements.forget(name)
        self.breakers.planning.call_off(name)
        self.scopes.forget(name)
        self.contested.forget(name)

    # -- runs ----------------------------------------------------------------------------------------

    def run_begun(self, name: str) -> None:
        """Record a run that is under way, or waits for its turn."""
        self._begun[name] = self.clock.monotonic()

    def run_skipped(self, name: str) -> None:
        """Record a run that was due while the earlier one was under way."""
        self._skipped.add(name)
        self.changed.notify()

    def run_ended(self, name: str, result: RunResult, problem: str) -> None:
        """Record the end of a run; ``problem`` is the error that ended it."""
        self._begun.pop(name, None)
        self._skipped.discard(name)
        if result is not RunResult.SKIPPED:
            is_hanging = result is RunResult.TIMED_OUT and self.breakers.planning.is_hanging(name)
            self._broken[name] = "" if is_hanging else problem
        self.changed.notify()

    async def review(
        self, policy: SchedulingPolicy, inputs: RunInput, failures: Iterable[PluginError]
    ) -> None:
        """Review a policy's scope, and the findings of its run."""
        await self.scopes.look(policy, inputs.rebalancing, inputs.cluster)
        self.contested.look(policy.metadata.name, inputs.rebalancing, inputs.cluster)
        self.look_back(
            policy.metadata.name,
            inputs.memory,
            failures,
            surges=inputs.rebalancing.surge,
            by_load=by_load_conditions(inputs.rebalancing, inputs.cluster),
            halted=inputs.halted,
        )

    def look_back(
        self,
        name: str,
        memory: MoveHistory,
        failures: Iterable[PluginError] = (),
        *,
        surges: bool = False,
        by_load: Mapping[str, str] | None = None,
        halted: str = "",
    ) -> None:
        """Record the findings of a run, which may surge pods or not; ``by_load`` if it checked that.

        ``halted`` says why it moved nothing because of its nodes' conditions.
        """
        if by_load is None:
            known = self._known.get(name, {})
            by_load = {reason: known.get(reason, "") for reason in (TWO_YARDSTICKS, NOT_MEASURED)}
        resting, _ = memory.rest(name)
        # A right that is known to be missing is reported with the others.
        are_allowed = all(map(self.breakers.access.allows, (*LOOK_AT_DEPLOYMENTS, SURGE)))
        found = {
            "Resting": resting,
            "PodsDisplaced": self.breakers.displacements.sentence(name),
            "NodesUnhealthy": halted,
            "StrategySuspended": "; ".join(memory.suspended(name)),
            "StrategyFailed": "; ".join(sorted({sentence_of(each) for each in failures})),
            **by_load,
            "SurgeForbidden": self.surges.trouble if surges and are_allowed else "",
        }
        self._known[name] = {reason: sentence for reason, sentence in found.items() if sentence}
        self.changed.notify()

    # -- the statuses --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Have policies' conditions written when their reasons have changed, until cancelled."""
        before: Mapping[str, object] = {}
        while True:
            seen = self.changed.count
            reasons = {name: (self.of(name), self.advice(name)) for name in self.policies}
            present = {name: said for name, said in reasons.items() if any(said)}
            if present != before:
                before = present
                self.conditions.notify()
            now = self.clock.monotonic()
            due = min(filter(lambda at: at > now, map(self._overdue, self._skipped)), default=math.inf)
            if due < math.inf:
                await first_of(self.changed.wait(seen), self.clock.sleep(due - now))
            else:
                await self.changed.wait(seen)
