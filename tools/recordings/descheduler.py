"""Recorded decisions of descheduler: cases read from files, and decided again by the Upstream planner.

Each case is carried out by the operator's own parts (:mod:`recordings.server`), and once more by a run of
the policy that ``plimsoll convert --keep-behaviour`` makes of it. Recordings of a dry run are also planned,
as a policy in mode ``DryRun`` plans.

A recording is a folder of ``<family>.jsonl.gz``, one case a line: Kubernetes objects, a DeschedulerPolicy
(``descheduler/v1alpha2``), a clock, and ``expected``, what one cycle of descheduler did. The comparison is
:mod:`recordings.descheduler_replay`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from pydantic import ValidationError

from plimsoll.api.v1alpha1.metrics_providers import source_of
from plimsoll.framework import ConfigurationError, Node, Pod, PodInfo
from plimsoll.framework.descheduling.context import Evictor
from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.framework.errors import CannotJudgeError
from plimsoll.migration import descheduler_file
from plimsoll.migration.descheduler_file import (
    KUBERNETES_METRICS,
    PROMETHEUS,
    DeschedulerPolicy,
    DeschedulerProfile,
)
from plimsoll.migration.descheduler_profiles import EVICTOR, EVICTOR_CLASSES, STRATEGIES, checked_profile
from plimsoll.migration.documents import Path
from plimsoll.migration.report import path_text
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.storage import PersistentVolumeClaim
from plimsoll.model.kinds.workload import Namespace, PodDisruptionBudget, PriorityClass
from plimsoll.model.quantity import nanos
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import SelectorError
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig
from plimsoll.planning.upstream.cycle import StrategyProfile, UpstreamOutcome, UpstreamPolicy
from plimsoll.planning.upstream.planner import Forecast, UpstreamRun
from plimsoll.strategies.default_evictor import SYSTEM_CRITICAL_PRIORITY, DefaultEvictor
from recordings.policies import policy_of
from recordings.server import Evicted, RecordedServer

SHELVES: Mapping[str, tuple[str, type[Any]]] = {
    "namespaces": ("namespaces", Namespace),
    "pdbs": ("budgets", PodDisruptionBudget),
    "priorityClasses": ("priority_classes", PriorityClass),
    "pvcs": ("claims", PersistentVolumeClaim),
}
"""Field of a case to the shelf of ``ClusterObjects`` it fills, and the kind of its items."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of a case.

    Attributes:
        outcome: Of the cycle.
        rehearsed: Of the same cycle as a dry run, which asks no server.
        by_policy: What a run of the converted policy evicts; None where there is no such policy.
        error: Why the policy is refused.
        error_of_conversion: Why it cannot be converted.
    """

    outcome: UpstreamOutcome
    rehearsed: UpstreamOutcome | None = None
    by_policy: Sequence[Evicted] | None = None
    error: str = ""
    error_of_conversion: str = ""


def decide(case: Mapping[str, Any]) -> Decided:
    """Run the case's policy on its cluster, once."""
    cluster = Cluster()
    for field, (shelf, kind) in SHELVES.items():
        for each in case.get(field) or ():
            value = convert(kind, each)
            meta = value.metadata
            key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            getattr(cluster.objects, shelf)[key] = value
    for each in case["nodes"]:
        cluster.set_node(convert(Node, each))
    unplaced: list[PodInfo] = []
    for each in case["pods"]:
        pod = _as_written(convert(Pod, each))
        info = cluster.templates.info(pod)
        if pod.is_terminal or pod.node_name not in cluster.rows:
            unplaced.append(info)
        else:
            cluster.place(info, pod.node_name)
    try:
        given, policy = read_policy(case["policy"], cluster)
    except ConfigurationError as exc:
        return Decided(UpstreamOutcome(), error=str(exc))
    now = datetime.fromisoformat(case["now"])
    planning_context = PlanningContext(now, unplaced, measurements=_measurements(case, given))
    terminates = case.get("evictionMode") == "terminate"
    refusing = case.get("evictionErrors") or {}

    def server() -> RecordedServer:
        return RecordedServer(
            cluster,
            unplaced,
            now,
            measurements=planning_context.measurements,
            refusing=refusing,
            terminates=terminates,
        )

    rehearsal, run = (_run(policy, cluster, planning_context) for _ in range(2))
    rehearsal.rehearse()
    server().carry_out(run)
    try:
        made = policy_of(case["policy"])
        by_policy = None if made is None else server().rebalance(made)
    except (ConfigurationError, ValidationError) as exc:
        return Decided(run.outcome, rehearsal.outcome, error_of_conversion=str(exc))
    return Decided(run.outcome, rehearsal.outcome, by_policy)


def _run(policy: UpstreamPolicy, cluster: Cluster, planning_context: PlanningContext) -> UpstreamRun:
    """A run without forecasts of the targets."""
    return UpstreamRun(policy, Forecast(RebalancingConfig((), (), {}), cluster), cluster, planning_context)


def read_policy(document: Mapping[str, Any], cluster: Cluster) -> tuple[DeschedulerPolicy, UpstreamPolicy]:
    """Build what a policy asks for.

    Args:
        document: As parsed from YAML or JSON.
        cluster: To look up priority classes in.

    Returns:
        The policy as written, and in plain values.

    Raises:
        ConfigurationError: The policy is refused.
    """
    policy = descheduler_file.read_policy(document)
    try:
        nodes = parse_selector(policy.node_selector)
    except SelectorError as exc:
        raise ConfigurationError("nodeSelector", str(exc)) from exc
    limits = Limits(
        total=_ceiling(policy.max_no_of_pods_to_evict_total),
        per_node=_ceiling(policy.max_no_of_pods_to_evict_per_node),
        per_namespace=_ceiling(policy.max_no_of_pods_to_evict_per_namespace),
        per_workload=NO_CEILING,
    )
    profiles = tuple(
        _profile(profile, ("profiles", position), cluster) for position, profile in enumerate(policy.profiles)
    )
    return policy, UpstreamPolicy(profiles, nodes, limits)


def _profile(given: DeschedulerProfile, at: Path, cluster: Cluster) -> StrategyProfile:
    profile = checked_profile(given, at)
    for where, name in profile.unknown:
        raise ConfigurationError(path_text(where), f"plugin {name} in pluginConfig not registered")
    evictor = EVICTOR_CLASSES.build(EVICTOR, profile.evictor_args, path_text(at))
    _check_threshold(evictor, cluster, f"{path_text(at)}.pluginConfig[DefaultEvictor].args.priorityThreshold")
    strategies = [
        STRATEGIES.build(each.name, each.args, path_text(each.args_at)) for each in profile.strategies
    ]
    return StrategyProfile(profile.name, (evictor,), tuple(strategies))


def _check_threshold(evictor: Evictor, cluster: Cluster, path: str) -> None:
    if not isinstance(evictor, DefaultEvictor):
        return
    try:
        threshold = evictor.threshold_of(cluster.objects)
    except CannotJudgeError as exc:
        raise ConfigurationError(path, str(exc)) from exc
    if threshold is not None and threshold > SYSTEM_CRITICAL_PRIORITY:
        raise ConfigurationError(path, f"priority threshold can't be greater than {SYSTEM_CRITICAL_PRIORITY}")


def _ceiling(count: int | None) -> Ceiling:
    return NO_CEILING if count is None else Ceiling(count=count)


def _as_written(pod: Pod) -> Pod:
    """The pod without the amounts that a resize in place observed, which descheduler does not read."""
    status = msgspec.structs.replace(
        pod.status,
        resources=None,
        allocated_resources={},
        container_statuses=_bare(pod.status.container_statuses),
        init_container_statuses=_bare(pod.status.init_container_statuses),
    )
    return msgspec.structs.replace(pod, status=status)


def _bare(statuses: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(msgspec.structs.replace(each, resources=None, allocated_resources={}) for each in statuses)


def _measurements(case: Mapping[str, Any], given: DeschedulerPolicy) -> Measurements:
    samples = case.get("prometheus") if PROMETHEUS in given.sources else None
    metrics = KUBERNETES_METRICS in given.sources
    args = [source_of(each.args)[1] for profile in given.profiles for each in profile.plugin_config]
    return Measurements(
        nodes={
            # A resource that the metrics server leaves out counts as not used.
            each["metadata"]["name"]: {"cpu": 0, "memory": 0} | _amounts(each.get("usage") or {})
            for each in case.get("nodeMetrics") or ()
        }
        if metrics
        else None,
        pods={
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": _sum(
                [_amounts(container["usage"]) for container in each["containers"]]
            )
            for each in case.get("podMetrics") or ()
            # A pod with a container that lacks a resource counts as not measured.
            if all({"cpu", "memory"} <= container["usage"].keys() for container in each["containers"])
        }
        if metrics
        else None,
        samples=None
        if samples is None
        else {query: [Sample(each["metric"], float(each["value"])) for each in samples] for query in args},
    )


def _amounts(usage: Mapping[str, str]) -> dict[str, int]:
    return {name: nanos(amount) for name, amount in usage.items()}


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total
