"""Catalogue holds the available plugins and strategies, and builds profiles and configurations of them."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import ConfigurationError, Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.policies import schedule
from plimsoll.policies.profiles import profile_config, profile_of
from plimsoll.policies.rebalancing import NO_FORECASTS, WHERE, Registries, rebalancing_of, tell_who_stays
from plimsoll.strategies import EVICTORS
from plimsoll.strategies import IN_TREE as STRATEGIES


class Catalogue:
    """The plugins and strategies that policies can name: those in tree, unless larger registries are given.

    Attributes:
        plugins: The scheduling plugins.
        strategies: The strategies.
        default: The profile of a scheduler without a configuration.
    """

    def __init__(self, plugins: Registry | None = None, strategies: StrategyRegistry | None = None) -> None:
        self.plugins = plugins or Registry(PLUGINS)
        self.strategies = strategies or StrategyRegistry(STRATEGIES)
        self.default: Profile = build_profile(ProfileConfig(DEFAULT_SCHEDULER), self.plugins, self._defaults)
        self._registries = Registries(self.strategies, EvictorRegistry(EVICTORS))

    @property
    def _defaults(self) -> list[Enabled]:
        return [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in self.plugins]

    def profile(self, spec: SchedulingSpec, policy: str = "") -> Profile:
        """Build the profile of a policy; it names its extenders, but does not call them.

        Raises:
            ConfigurationError: The spec names a plugin that does not exist or cannot be used.
        """
        return profile_of(spec, policy, self.plugins, self._defaults)

    def rebalancing(
        self,
        policy: SchedulingPolicy,
        profiles: Mapping[str, Profile],
        objects: ClusterObjects,
        now: datetime,
        forecasts: Forecasts = NO_FORECASTS,
    ) -> RebalancingConfig:
        """Build the planner's configuration of a policy.

        Raises:
            ConfigurationError: The spec cannot be carried out; names the field.
        """
        return rebalancing_of(policy, self._registries, profiles, objects, now, forecasts)

    def tell_who_stays(self, policies: Iterable[SchedulingPolicy], profiles: Mapping[str, Profile]) -> None:
        """Tell the profiles which pods their policies would never move."""
        tell_who_stays(policies, self._registries, profiles)


class SchedulingJudge(Struct, frozen=True):
    """Judges ``spec.scheduling``; only the operator judges certificates of extenders."""

    catalogue: Catalogue

    def check(self, spec: SchedulingSpec) -> tuple[str, object]:
        """The queue sort plugin with its arguments; raises ConfigurationError."""
        sort = self.catalogue.profile(spec).queue_sort.name
        return sort, profile_config(spec).args.get(sort) or {}


class RebalancingJudge(Struct, frozen=True):
    """Judges ``spec.rebalancing`` as of a given time."""

    catalogue: Catalogue
    objects: ClusterObjects
    now: datetime

    def check(self, policy: SchedulingPolicy) -> None:
        """Raise ConfigurationError when the policy's rebalancing cannot be carried out."""
        self.catalogue.rebalancing(policy, {}, self.objects, self.now)
        try:
            schedule.check((policy.spec.rebalancing or RebalancingSpec()).schedule)
        except ValueError as exc:
            raise ConfigurationError(f"{WHERE}.schedule", str(exc)) from exc
