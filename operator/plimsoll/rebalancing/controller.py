"""Rebalancers carry the policies: when each of them runs, and what a change of one ends."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import ConfigurationError
from plimsoll.model.kinds.watch_event import WatchEvent
from plimsoll.rebalancing import schedule
from plimsoll.rebalancing.config import WHERE
from plimsoll.rebalancing.execution.executor import MoveExecutor
from plimsoll.rebalancing.moves.events import HoldUpsChanged, PolicyChanged, StopPressed
from plimsoll.rebalancing.runs.degraded_reasons import DegradedReasons
from plimsoll.rebalancing.runs.policy_configs import PolicyConfigs
from plimsoll.rebalancing.runs.predictions import Predictions
from plimsoll.rebalancing.runs.run import PolicyRuns

#: From a change that triggers a run to the run: changes come in groups, and are seen by then.
TRIGGERED = timedelta(seconds=5)


class KeptByPolicy(Protocol):
    """Keeps something of each policy."""

    def forget(self, name: str) -> None:
        """The policy rebalances no longer."""


class Rebalancers:
    """The rebalancing of all policies.

    Args:
        policies: Those that rebalance, keyed by name; written here.
        timetable: When they run.
        runs: Their runs.
        configs: What they want.
        executor: Receives their changes.
        degraded: What keeps them from moving pods.
        predictions: What dry runs predict.
        kept: What else is kept of each.
    """

    def __init__(
        self,
        policies: dict[str, SchedulingPolicy],
        timetable: schedule.Timetable,
        runs: PolicyRuns,
        configs: PolicyConfigs,
        executor: MoveExecutor,
        degraded: DegradedReasons,
        predictions: Predictions,
        kept: Sequence[KeptByPolicy],
    ) -> None:
        self._policies = policies
        self._timetable = timetable
        self._runs = runs
        self._configs = configs
        self._executor = executor
        self._degraded = degraded
        self._predictions = predictions
        self._kept = (degraded, *kept)
        self._running = False
        self._was_stopped = False

    def check(self, policy: SchedulingPolicy) -> None:
        """Make sure that the policy's rebalancing can be carried out.

        Raises:
            ConfigurationError: It cannot; names the field.
        """
        self._configs.configured(policy)
        spec = policy.spec.rebalancing or RebalancingSpec()
        try:
            schedule.check(spec.schedule)
        except ValueError as exc:
            raise ConfigurationError(f"{WHERE}.schedule", str(exc)) from exc

    def configure(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Run these policies' rebalancing, and no other's; unchanged ones keep their timetable."""
        wanted = {policy.metadata.name: policy for policy in policies}
        for name in [name for name in self._policies if name not in wanted]:
            self.drop(name)
            self._timetable.remove(name)
            for each in self._kept:
                each.forget(name)
        for name, policy in wanted.items():
            known = self._policies.get(name)
            if known is not None and known.spec != policy.spec:
                self._degraded.spec_changed(name)
            self.adopt(policy)
            if self._running and (known is None or known.spec != policy.spec):
                self._schedule(policy)

    def adopt(self, policy: SchedulingPolicy) -> None:
        """A policy rebalances from now on, or by another spec."""
        known = self._policies.get(policy.metadata.name)
        self._policies[policy.metadata.name] = policy
        if known is not policy:
            self._executor.post(_changed(policy))
            self._configs.breakers.probe.policies_changed()

    def drop(self, name: str) -> None:
        """A policy rebalances no longer."""
        del self._policies[name]
        self._executor.post(PolicyChanged(name, None))
        self._configs.breakers.probe.policies_changed()

    def retain_predictions(self, policies: Collection[str]) -> None:
        """These policies may have predictions; those of others are deleted soon."""
        self._predictions.retain(policies)

    def _schedule(self, policy: SchedulingPolicy) -> None:
        name, spec = policy.metadata.name, policy.spec.rebalancing or RebalancingSpec()
        self._timetable.set(name, spec.schedule, lambda: self._runs.fall_due(name))

    def observe(self, event: WatchEvent) -> None:
        """A change of a node may hasten a run; a namespace may carry the stop button."""
        fired = schedule.triggers_of(event)
        if fired and self._running:
            for name, policy in self._policies.items():
                spec = policy.spec.rebalancing
                if spec is not None and not fired.isdisjoint(spec.schedule.triggers):
                    self._timetable.hasten(name, TRIGGERED)
        stop = self._configs.breakers.stop
        if stop.is_pressed is not self._was_stopped:
            self._was_stopped = stop.is_pressed
            self._executor.post(StopPressed(stop.sentence) if self._was_stopped else HoldUpsChanged())

    def announce(self) -> None:
        """Report all policies to the moves of earlier processes."""
        self._executor.post(*map(_changed, self._policies.values()))

    def start(self) -> None:
        """Run by the timetable from now on."""
        self._running = True
        self._timetable.start()
        for policy in self._policies.values():
            self._schedule(policy)

    def stop(self) -> None:
        """Begin no further run."""
        self._timetable.stop()

    def run_now(self, name: str) -> None:
        """Hasten the next run of a policy: somebody has requested it."""
        if self._running:
            self._timetable.hasten(name, timedelta())

    def troubles(self, name: str) -> Mapping[str, str]:
        """What keeps a policy from moving pods, in sentences by reason."""
        return self._degraded.of(name)

    def advice(self, name: str) -> Mapping[str, tuple[str, str]]:
        """Further conditions of a policy that hold: reason and sentence by type."""
        return self._degraded.advice(name)


def _changed(policy: SchedulingPolicy) -> PolicyChanged:
    spec = policy.spec.rebalancing
    if spec is None:
        return PolicyChanged(policy.metadata.name, None)
    timeout_s = float(spec.eviction_request_timeout_seconds)
    return PolicyChanged(policy.metadata.name, spec.mode, spec.evict_by, timeout_s)
