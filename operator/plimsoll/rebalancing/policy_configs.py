"""PolicyConfigs says what each policy wants at this moment, within what the breakers allow."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from plimsoll.access.rights import NO_RIGHTS, Access, Part
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.cache import Cache
from plimsoll.engine.profile import Profile
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.breakers.displacement import DisplacementBreaker
from plimsoll.rebalancing.breakers.stop_button import StopButton, barred, undisturbed
from plimsoll.rebalancing.config import rebalancing_of
from plimsoll.rebalancing.plan_runner import PlanRunner
from plimsoll.rebalancing.ways import RequestProbe


@dataclass(frozen=True, slots=True)
class Breakers:
    """What keeps policies from moving pods.

    Attributes:
        stop: The stop button.
        displacements: Which policies rest because pods have lost their places.
        access: Which rights are missing.
        probe: Says whether EvictionRequests can be made.
        planning: Knows the policies whose plans hang.
    """

    stop: StopButton
    displacements: DisplacementBreaker
    access: Access
    probe: RequestProbe
    planning: PlanRunner


class PolicyConfigs:
    """The live policies in plain values.

    Args:
        policies: Those that rebalance, as they are at any moment; keys are their names.
        strategies: That policies can name.
        evictors: That policies can name.
        forecast: The default profile, for pods of schedulers that are not ours.
        cache: The cluster.
        breakers: What keeps policies from moving pods.
        clock: Time.

    Attributes:
        profiles: By scheduler name: who places replacements; set when policies change.
    """

    def __init__(
        self,
        *,
        policies: Mapping[str, SchedulingPolicy],
        strategies: StrategyRegistry,
        evictors: EvictorRegistry,
        forecast: Profile,
        cache: Cache,
        breakers: Breakers,
        clock: Clock,
    ) -> None:
        self.profiles: Mapping[str, Profile] = {}
        self._policies = policies
        self._strategies = strategies
        self._evictors = evictors
        self._forecast = forecast
        self._cache = cache
        self._breakers = breakers
        self._clock = clock

    def configured(self, policy: SchedulingPolicy) -> RebalancingConfig:
        """What a policy wants.

        Raises:
            ConfigurationError: It cannot be carried out; names the field.
        """
        wanted = rebalancing_of(
            policy,
            strategies=self._strategies,
            evictors=self._evictors,
            profiles=self.profiles,
            objects=self._cache.cluster.objects,
            forecast=self._forecast,
            now=datetime.fromtimestamp(self._clock.now(), UTC),
        )
        wanted = undisturbed(wanted, self._breakers.displacements, policy.metadata.name)
        if self._breakers.access.obstacle(policy, Part.REBALANCING):
            wanted = barred(wanted, NO_RIGHTS)
        return self._breakers.stop.heeded(self._breakers.probe.heeded(policy, wanted))

    def of(self, name: str) -> RebalancingConfig | None:
        """What a policy wants; None when it rebalances no longer."""
        policy = self._policies.get(name)
        return None if policy is None else self.configured(policy)

    def spec_of(self, name: str) -> RebalancingSpec | None:
        """The same as its spec."""
        policy = self._policies.get(name)
        return None if policy is None else policy.spec.rebalancing

    def others(self, name: str) -> dict[str, RebalancingConfig]:
        """What the other policies want that carry moves out; keys are their names."""
        return {
            other: self.configured(policy)
            for other, policy in self._policies.items()
            if other != name
            and not self._breakers.planning.is_slow(other)  # its strategies would hold up this policy, too
            and policy.spec.rebalancing is not None
            and policy.spec.rebalancing.mode is not Mode.DRY_RUN
        }

    def hold_up(self, name: str) -> str:
        """Why approved moves of a policy wait, "" when they do not."""
        if self._breakers.stop.is_pressed:
            return self._breakers.stop.sentence
        policy = self._policies.get(name)
        if policy is None:
            return ""
        return self._breakers.displacements.sentence(name) or self._breakers.access.obstacle(
            policy, Part.REBALANCING
        )
