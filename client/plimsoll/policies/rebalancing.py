"""Converts a policy's rebalancing into the planner's plain values; errors name the exact field."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import ClassVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from plimsoll.api.schema.fields import duration_s
from plimsoll.api.schema.label_selectors import LabelSelectorSpec, compiled
from plimsoll.api.v1alpha1.evictor import EvictorSpec, ExtraProtection
from plimsoll.api.v1alpha1.limits import EvictionBudget, EvictionLimits
from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS, PROMETHEUS, source_of
from plimsoll.api.v1alpha1.prometheus import METRIC_RESOURCE
from plimsoll.api.v1alpha1.rebalancing import PlannerName, RebalancingSpec, StrategySpec
from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.engine.profile import Profile
from plimsoll.framework import ConfigurationError
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.descheduling.strategy import Strategy, by_load_book, planners_of
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import Selector, SelectorError
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.limits import Ceiling, Limits
from plimsoll.planning.moves import Goal, Objective, PolicyFigures, RebalancingConfig
from plimsoll.planning.rebalancing_rules import RebalancingRules, no_rules
from plimsoll.planning.scope import PolicyScope
from plimsoll.planning.solver import INSTALL_SOLVER, has_solver
from plimsoll.plugins.pack_unmovable import PackUnmovable
from plimsoll.policies import schedule
from plimsoll.policies.rebalancing_rules import present_rules
from plimsoll.ports.usage import MEASURED
from plimsoll.toolkit.descheduling.unmovable_pods import StayRule

WHERE = "spec.rebalancing"

NO_FORECASTS = Forecasts()


class SolverMissingError(ConfigurationError):
    """The planner Optimal was chosen where its solver is not installed."""

    reason: ClassVar[str] = "SolverMissing"


class Registries(Struct, frozen=True):
    """The names that policies can use."""

    strategies: StrategyRegistry
    evictors: EvictorRegistry


def rebalancing_of(
    policy: SchedulingPolicy,
    registries: Registries,
    profiles: Mapping[str, Profile],
    objects: ClusterObjects,
    now: datetime,
    forecasts: Forecasts = NO_FORECASTS,
) -> RebalancingConfig:
    """The planner's input.

    Raises:
        ConfigurationError: An unknown strategy, bad arguments, or a planner whose solver is missing; names
            the field.
    """
    spec = policy.spec.rebalancing or RebalancingSpec()
    limits, optimizer = spec.limits, spec.optimizer
    _check_sources(spec)
    scope = _scope_of(policy, objects, profiles)
    rules = RebalancingRules(present_rules(objects.rules, now) if objects.rules else no_rules)
    evictor = _evictor(spec.evictor, registries.evictors, f"{WHERE}.evictor")
    planner = Planner(spec.planner)
    by_book = planner is not Planner.UPSTREAM and _fill_the_book(spec)
    if planner is Planner.OPTIMAL and not has_solver():
        raise SolverMissingError(
            f"{WHERE}.planner",
            f"Optimal needs the solver HiGHS, which is not installed; {INSTALL_SOLVER}",
        )
    return RebalancingConfig(
        strategies=[
            by_load_book(found) if by_book else found
            for found in (
                _strategy(each, position, registries.strategies, planner)
                for position, each in enumerate(spec.strategies)
            )
        ],
        evictors=(scope, rules, evictor),
        own_evictors={
            position: (
                scope,
                rules,
                _evictor(each.evictor, registries.evictors, f"{WHERE}.strategies[{position}].evictor"),
            )
            for position, each in enumerate(spec.strategies)
            if each.evictor is not None
        },
        profiles=profiles,
        forecasts=forecasts,
        limits=replace(
            limits_of(limits),
            rules=rules.of,
            budgets=tuple(
                (each.name, _ceiling(each.evictions)) for each in _open_budgets(limits.budgets, now)
            ),
        ),
        nodes=_selector(policy.spec.scope.node_selector, "spec.scope.nodeSelector"),
        targets=_targets(spec.evictor.node_selector),
        planner=planner,
        surge=spec.surge and planner is not Planner.UPSTREAM,
        goal=Goal(Objective(optimizer.objective), float(optimizer.time_limit_seconds), optimizer.move_price),
        **asdict(msgspec.convert(spec, PolicyFigures, from_attributes=True)),
    )


def tell_who_stays(
    policies: Iterable[SchedulingPolicy], registries: Registries, profiles: Mapping[str, Profile]
) -> None:
    """Tell the plugins PackUnmovable of the profiles what each one's own policy would never move.

    Raises:
        ConfigurationError: An evictor cannot be built; the policy has been accepted with it.
    """
    known = {policy.metadata.name: policy for policy in policies}
    for profile in profiles.values():
        policy = known.get(profile.policy)
        for plugin in profile.score:
            if isinstance(plugin, PackUnmovable):
                plugin.rule = None if policy is None else _stay_rule(policy, registries, profiles)


def _stay_rule(policy: SchedulingPolicy, registries: Registries, served: Iterable[str]) -> StayRule:
    spec = policy.spec.rebalancing or RebalancingSpec()
    evictor = _evictor(spec.evictor, registries.evictors, f"{WHERE}.evictor")
    protections, schedulers = spec.evictor.pod_protections, tuple(served)

    def evictors_of(objects: ClusterObjects) -> tuple[Evictor, ...]:
        rules = RebalancingRules(present_rules(objects.rules, None) if objects.rules else no_rules)
        return _scope_of(policy, objects, schedulers), rules, evictor

    return StayRule(
        evictors_of,
        Planner(spec.planner),
        surges=spec.surge and spec.planner is not PlannerName.UPSTREAM,
        by_labels=bool(policy.spec.scope.namespaces.label_selector or spec.evictor.namespace_label_selector),
        by_objects=ExtraProtection.PODS_WITHOUT_PDB in protections.extra_enabled
        or protections.config is not None,
    )


def limits_of(limits: EvictionLimits) -> Limits:
    """The ceilings of a run, without budgets."""
    return Limits(
        total=_ceiling(limits.total),
        per_minute=_ceiling(limits.per_minute),
        per_node=_ceiling(limits.per_node),
        per_namespace=_ceiling(limits.per_namespace),
        per_workload=_ceiling(limits.per_workload),
    )


def _check_sources(spec: RebalancingSpec) -> None:
    provided = {each.source for each in spec.metrics_providers}
    servers = (each.prometheus for each in spec.metrics_providers if each.prometheus is not None)
    queried = {name for server in servers for name in server.queries.node}
    for position, strategy in enumerate(spec.strategies):
        source, _ = source_of(strategy.args)
        if source in (KUBERNETES_METRICS, PROMETHEUS) and source not in provided:
            raise ConfigurationError(
                f"{WHERE}.strategies[{position}].args.metricsUtilization.source",
                f"{source} is not among {WHERE}.metricsProviders; add it there",
            )
        thresholds = strategy.args.get("thresholds")
        if source != PROMETHEUS or not isinstance(thresholds, Mapping):
            continue
        for name in thresholds:
            if name != METRIC_RESOURCE and name not in queried:
                raise ConfigurationError(
                    f"{WHERE}.strategies[{position}].args.thresholds.{name}",
                    f"no query of source Prometheus measures it; add it to {WHERE}.metricsProviders, under"
                    " prometheus.queries.node",
                )


def _fill_the_book(spec: RebalancingSpec) -> bool:
    """Whether queries of the policy measure cpu and memory of nodes and of pods, as moves by load require."""
    if spec.prometheus is None:
        return False
    queries = spec.prometheus.queries
    return queries.node.keys() >= MEASURED.keys() and None not in (queries.pod.cpu, queries.pod.memory)


def _open_budgets(budgets: Iterable[EvictionBudget], now: datetime) -> Iterator[EvictionBudget]:
    """The budgets that hold at a moment; raises ConfigurationError for an invalid schedule."""
    for position, budget in enumerate(budgets):
        if budget.schedule is None or budget.duration is None:
            yield budget
            continue
        opening = Schedule(cron=budget.schedule, time_zone=budget.time_zone)
        try:
            schedule.check(opening)
        except ValueError as exc:
            raise ConfigurationError(f"{WHERE}.limits.budgets[{position}].schedule", str(exc)) from exc
        if schedule.is_open(opening, duration_s(budget.duration), now):
            yield budget


def _scope_of(policy: SchedulingPolicy, objects: ClusterObjects, served: Iterable[str]) -> PolicyScope:
    """The policy's scope as an evictor; an unknown priority class protects every pod of it."""
    scope = policy.spec.scope
    threshold = scope.priority_threshold
    priority, unknown = None, ""
    if threshold is not None:
        named = objects.priority_classes.get(threshold.name) if threshold.name else None
        priority = named.value if named else threshold.value
        unknown = "" if named else threshold.name or ""
    return PolicyScope(
        include=frozenset(scope.namespaces.include),
        exclude=frozenset(scope.namespaces.exclude),
        namespace_selector=_selector(scope.namespaces.label_selector, "spec.scope.namespaces.labelSelector"),
        pod_selector=_selector(scope.pod_selector, "spec.scope.podSelector"),
        priority_threshold=priority,
        unknown_class=unknown,
        schedulers=frozenset(served) | frozenset(scope.other_schedulers),
    )


def _evictor(given: EvictorSpec, evictors: EvictorRegistry, where: str) -> Evictor:
    args = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    _targets(given.node_selector, where)
    return evictors.build("DefaultEvictor", args, where)


def _strategy(given: StrategySpec, position: int, strategies: StrategyRegistry, planner: Planner) -> Strategy:
    where = f"{WHERE}.strategies[{position}]"
    able = planners_of(strategies.find(given.name, f"{where}.name"))
    if able is not None and planner not in able:
        raise ConfigurationError(
            f"{where}.name",
            f"{given.name} cannot be driven by planner {planner}, only by {', '.join(sorted(able))}",
        )
    return strategies.build(given.name, given.args, f"{where}.args")


def _ceiling(amount: int | str) -> Ceiling:
    if isinstance(amount, int):
        return Ceiling(count=amount)
    return Ceiling(percent=int(amount.removesuffix("%")))


def _targets(text: str | None, where: str = f"{WHERE}.evictor") -> Selector:
    try:
        return parse_selector(text or "")
    except SelectorError as exc:
        raise ConfigurationError(f"{where}.nodeSelector", str(exc)) from exc


def _selector(given: LabelSelectorSpec | None, path: str) -> Selector:
    try:
        return compiled(given)
    except (SelectorError, msgspec.MsgspecError) as exc:
        raise ConfigurationError(path, str(exc)) from exc
