"""PolicyConfigs say what each policy wants at this moment, within what the breakers allow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from plimsoll.access.rights import NO_RIGHTS, Access, Part
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Profile
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.breakers import STOP, DisplacementBreaker, StopButton, bounded
from plimsoll.rebalancing.runs.config import Registries, rebalancing_of
from plimsoll.rebalancing.runs.plan_runner import PlanRunner
from plimsoll.rebalancing.ways import REQUESTS_API, RequestProbe, leaves_by_request


@dataclass(frozen=True, slots=True)
class Breakers:
    """What keeps policies from moving pods."""

    stop: StopButton
    displacements: DisplacementBreaker
    access: Access
    probe: RequestProbe
    planning: PlanRunner  #: knows the policies whose plans hang


@dataclass(eq=False)
class PolicyConfigs:
    """The live policies in plain values."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    registries: Registries  #: what policies can name
    objects: ClusterObjects  #: where priority classes are looked up
    breakers: Breakers  #: what keeps policies from moving pods
    clock: Clock
    #: by scheduler name: who places replacements; set when policies change
    profiles: Mapping[str, Profile] = field(default_factory=dict, init=False)

    def configured(self, policy: SchedulingPolicy) -> RebalancingConfig:
        """What a policy wants.

        Raises:
            ConfigurationError: It cannot be carried out; names the field.
        """
        now, breakers = datetime.fromtimestamp(self.clock.now(), UTC), self.breakers
        wanted = rebalancing_of(policy, self.registries, self.profiles, self.objects, now)
        if breakers.displacements.sentence(policy.metadata.name):
            wanted = bounded(wanted, "rest until displaced pods have a place")
        if breakers.access.obstacle(policy, Part.REBALANCING):
            wanted = bounded(wanted, NO_RIGHTS)
        is_dry = policy.spec.rebalancing is None or policy.spec.rebalancing.mode is Mode.DRY_RUN
        if leaves_by_request(policy) and not is_dry and breakers.probe.refusal():
            wanted = bounded(wanted, REQUESTS_API)
        return bounded(wanted, STOP) if breakers.stop.is_pressed else wanted

    def of(self, name: str) -> RebalancingConfig | None:
        """What a policy wants; None when it rebalances no longer."""
        policy = self.policies.get(name)
        return None if policy is None else self.configured(policy)

    def spec_of(self, name: str) -> RebalancingSpec | None:
        """The same as its spec."""
        policy = self.policies.get(name)
        return None if policy is None else policy.spec.rebalancing

    def others(self, name: str) -> dict[str, RebalancingConfig]:
        """What the other policies want that carry moves out; keys are their names."""
        return {
            other: self.configured(policy)
            for other, policy in self.policies.items()
            if other != name
            and not self.breakers.planning.is_slow(other)  # its strategies would hold up this policy, too
            and policy.spec.rebalancing is not None
            and policy.spec.rebalancing.mode is not Mode.DRY_RUN
        }

    def hold_up(self, name: str) -> str:
        """Why approved moves of a policy wait, "" when they do not."""
        if self.breakers.stop.is_pressed:
            return self.breakers.stop.sentence
        policy = self.policies.get(name)
        if policy is None:
            return ""
        return self.breakers.displacements.sentence(name) or self.breakers.access.obstacle(
            policy, Part.REBALANCING
        )
