"""Starts the runs of policies when they are due, and passes changes of policies to the moves under way."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from plimsoll.access.rights import Part
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import WatchEvent
from plimsoll.framework import ConfigurationError
from plimsoll.policies import schedule
from plimsoll.policies.node_maintenance import PREFIX, is_of_maintenance
from plimsoll.policies.rebalancing import WHERE
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.events import HoldUpsChanged, PolicyChanged, StopPressed
from plimsoll.rebalancing.moves.state import MoveStage
from plimsoll.rebalancing.runs.degraded_reasons import DegradedReasons
from plimsoll.rebalancing.runs.policy_configs import PolicyConfigs
from plimsoll.rebalancing.runs.predictions import Predictions
from plimsoll.rebalancing.runs.run import PolicyRuns
from plimsoll.rebalancing.timetable import Timetable, triggers_of

#: Delay between a triggering change and the run: changes come in groups, and are mirrored by then.
TRIGGERED = timedelta(seconds=5)


class KeptByPolicy(Protocol):
    """Keeps state by policy."""

    def forget(self, name: str) -> None:
        """Forget a policy that no longer rebalances."""


@dataclass(eq=False)
class RebalancingController:
    """Rebalances for all policies."""

    policies: dict[str, SchedulingPolicy]  #: policies that rebalance, keyed by name; written here
    timetable: Timetable
    runs: PolicyRuns
    configs: PolicyConfigs
    executor: MoveExecutor
    degraded: DegradedReasons
    predictions: Predictions
    kept: Sequence[KeptByPolicy]  #: drop their state of a deleted policy
    are_all_known: bool = field(default=False, init=False)  #: whether all existing policies have been seen
    _maintained: dict[str, SchedulingPolicy] = field(default_factory=dict, init=False)
    _running: bool = field(default=False, init=False)
    _was_stopped: bool = field(default=False, init=False)

    def check(self, policy: SchedulingPolicy) -> None:
        """Validate that the policy's rebalancing can be carried out.

        Raises:
            ConfigurationError: It cannot; names the field.
        """
        if is_of_maintenance(policy.metadata.name):
            raise ConfigurationError(
                "metadata.name",
                f"{PREFIX} begins the names of NodeMaintenances' policies; choose another name",
            )
        self.configs.configured(policy)
        spec = policy.spec.rebalancing or RebalancingSpec()
        try:
            schedule.check(spec.schedule)
        except ValueError as exc:
            raise ConfigurationError(f"{WHERE}.schedule", str(exc)) from exc

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run exactly these policies' rebalancing; unchanged ones keep their timetable."""
        wanted = {policy.metadata.name: policy for policy in policies}
        for name in [name for name in self.policies if name not in wanted | self._maintained]:
            self._remove(name)
        for name, policy in wanted.items():
            known = self.policies.get(name)
            if known is not None and known.spec != policy.spec:
                self.degraded.spec_changed(name)
            self.adopt(policy)
            if self._running and (known is None or known.spec != policy.spec):
                self._schedule(policy)
        self.configs.tell_who_stays()

    def maintain(self, policy: SchedulingPolicy) -> None:
        """Run the policy of a NodeMaintenance soon, once; its moves that wait for their turn are dropped."""
        self._maintained[policy.metadata.name] = policy
        self.adopt(policy)
        if self._running:
            self._schedule(policy)

    def release(self, name: str) -> None:
        """Stop the policy of a NodeMaintenance; its moves under way are seen to their end."""
        if self._maintained.pop(name, None) is not None:
            self._remove(name)

    def _remove(self, name: str) -> None:
        self.drop(name)
        self.timetable.remove(name)
        for each in (self.degraded, *self.kept):
            each.forget(name)

    def adopt(self, policy: SchedulingPolicy) -> None:
        """Start rebalancing for a new policy, or by a new spec."""
        known = self.policies.get(policy.metadata.name)
        self.policies[policy.metadata.name] = policy
        if known is not policy:
            self.executor.post(_changed(policy))

    def drop(self, name: str) -> None:
        """Stop rebalancing for a policy."""
        del self.policies[name]
        self.executor.post(PolicyChanged(name, None))

    def retain_predictions(self, policies: Collection[str]) -> None:
        """Keep predictions of these policies; those of others are deleted soon."""
        foreseen = (
            name
            for name, each in self._maintained.items()
            if each.spec.rebalancing is not None and each.spec.rebalancing.mode is Mode.DRY_RUN
        )
        self.predictions.retain({*policies, *foreseen})

    def all_known(self) -> None:
        """Cancel proposals of earlier processes whose policy is gone or no longer in mode Approve."""
        self.are_all_known = True
        proposed = [each for each in self.executor.machine.moves.values() if each.stage is MoveStage.PROPOSED]
        for name in dict.fromkeys(each.policy for each in proposed if each.policy not in self.policies):
            self.executor.post(PolicyChanged(name, None))

    def _schedule(self, policy: SchedulingPolicy) -> None:
        name, spec = policy.metadata.name, policy.spec.rebalancing or RebalancingSpec()
        self.timetable.set(name, spec.schedule, lambda: self.runs.fall_due(name), self.runs.skip)

    def observe(self, event: WatchEvent) -> None:
        """Hasten runs that a node's change triggers; pass on a namespace's stop button."""
        fired = triggers_of(event)
        if fired and self._running:
            for name, policy in self.policies.items():
                spec = policy.spec.rebalancing
                if spec is not None and not fired.isdisjoint(spec.schedule.triggers):
                    self.timetable.hasten(name, TRIGGERED)
        stop = self.configs.breakers.stop
        if stop.is_pressed is not self._was_stopped:
            self._was_stopped = stop.is_pressed
            self.executor.post(StopPressed(stop.sentence) if self._was_stopped else HoldUpsChanged())

    def announce(self) -> None:
        """Report all policies to the moves of earlier processes."""
        self.executor.post(*map(_changed, self.policies.values()))

    def start(self) -> None:
        """Start the timetable."""
        self._running = True
        self.timetable.start()
        for policy in self.policies.values():
            self._schedule(policy)

    def stop(self) -> None:
        """Start no more runs."""
        self.timetable.stop()

    def rights_changed(self) -> None:
        """Run the policies whose latest run lacked rights that are there now."""
        access = self.configs.breakers.access
        for name in list(self.runs.lacking):
            policy = self.policies.get(name)
            if policy is not None and not access.obstacle(policy, Part.REBALANCING):
                self.run_now(name)

    def run_now(self, name: str) -> None:
        """Hasten the next run of a policy on request."""
        if self._running:
            self.timetable.hasten(name, timedelta())

    def troubles(self, name: str) -> Mapping[str, str]:
        """Sentences about what keeps a policy from moving pods, by reason."""
        return self.degraded.of(name)

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""
        return self.degraded.advice(name)


def _changed(policy: SchedulingPolicy) -> PolicyChanged:
    spec = policy.spec.rebalancing
    if spec is None:
        return PolicyChanged(policy.metadata.name, None)
    return PolicyChanged(policy.metadata.name, spec.mode)
