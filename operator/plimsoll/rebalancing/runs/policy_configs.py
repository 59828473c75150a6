"""Returns the present configuration of each policy, limited by the breakers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from plimsoll.access.rights import Access, Part
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Profile
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.moves import HoldReason, RebalancingConfig
from plimsoll.policies.rebalancing import Registries, rebalancing_of, tell_who_stays
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.breakers import DisplacementBreaker, StopButton
from plimsoll.rebalancing.runs.plan_runner import PlanRunner
from plimsoll.strategies.remove_pods_from_unhealthy_nodes import halted


class Breakers(msgspec.Struct, frozen=True):
    """The breakers that keep policies from moving pods."""

    stop: StopButton
    displacements: DisplacementBreaker
    access: Access
    planning: PlanRunner  #: knows which policies have hanging plans


@dataclass(eq=False)
class PolicyConfigs:
    """The live policies in plain values."""

    policies: Mapping[str, SchedulingPolicy]  #: those that rebalance, keyed by name, at any moment
    registries: Registries  #: the names that policies can use
    nodes: Sequence[Node]  #: the mirrored nodes
    objects: ClusterObjects  #: the mirrored priority classes
    breakers: Breakers  #: the breakers of moves
    clock: Clock
    emptied: Callable[[], frozenset[str]] = frozenset  #: the nodes that bundles under way empty
    maintained: frozenset[str] = frozenset()  #: the nodes of NodeMaintenances that go on
    #: by scheduler name: profiles that place replacements; set when policies change
    profiles: Mapping[str, Profile] = field(default_factory=dict, init=False)
    forecasts: Forecasts = field(default_factory=Forecasts, init=False)  #: the profiles assumed for others

    def configured(self, policy: SchedulingPolicy) -> RebalancingConfig:
        """A policy's configuration.

        Raises:
            ConfigurationError: It cannot be carried out; names the field.
        """
        now, breakers = datetime.fromtimestamp(self.clock.now(), UTC), self.breakers
        wanted = rebalancing_of(policy, self.registries, self.profiles, self.objects, now, self.forecasts)
        holds = (
            (HoldReason.STOPPED, breakers.stop.sentence if breakers.stop.is_pressed else ""),
            (HoldReason.NOT_ALLOWED, breakers.access.obstacle(policy, Part.REBALANCING)),
            (HoldReason.PODS_DISPLACED, breakers.displacements.sentence(policy.metadata.name)),
            (HoldReason.NODES_UNHEALTHY, halted(wanted.strategies, self.nodes, now)),
        )
        wanted = msgspec.structs.replace(wanted, leaving=self.maintained | self.emptied())
        for reason, sentence in holds:
            if sentence:
                wanted = wanted.held(reason, sentence)
        return wanted

    def of(self, name: str) -> RebalancingConfig | None:
        """A policy's configuration; None if it no longer rebalances."""
        policy = self.policies.get(name)
        return None if policy is None else self.configured(policy)

    def tell_who_stays(self) -> None:
        """Tell the profiles which pods their policies would never move; call it when these change."""
        tell_who_stays(self.policies.values(), self.registries, self.profiles)

    def spec_of(self, name: str) -> RebalancingSpec | None:
        """The same policy as its spec."""
        policy = self.policies.get(name)
        return None if policy is None else policy.spec.rebalancing

    def others(self, name: str) -> dict[str, RebalancingConfig]:
        """Configurations of the other policies that carry moves out, keyed by name."""
        return {
            other: self.configured(policy)
            for other, policy in self.policies.items()
            if other != name
            and not self.breakers.planning.is_slow(other)  # its strategies would delay this policy too
            and policy.spec.rebalancing is not None
            and policy.spec.rebalancing.mode is not Mode.DRY_RUN
        }

    def hold_up(self, name: str) -> str:
        """Why approved moves of a policy wait, "" if they do not."""
        if self.breakers.stop.is_pressed:
            return self.breakers.stop.sentence
        policy = self.policies.get(name)
        if policy is None:
            return ""
        return self.breakers.displacements.sentence(name) or self.breakers.access.obstacle(
            policy, Part.REBALANCING
        )
