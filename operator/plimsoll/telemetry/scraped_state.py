"""Collects figures about queues, caches and plugin calls at each scrape.

These figures change with every pod but are scraped only every few seconds. At a scrape they are computed from
the state itself, in the event loop that owns it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from plimsoll.api.v1alpha1.node_maintenance import MaintainedNodePhase, NodeMaintenance
from plimsoll.api.v1alpha1.pod_group import GroupPhase
from plimsoll.cluster.pod_groups import Group
from plimsoll.load.summary import LoadSummary
from plimsoll.rebalancing.runs.statistics import RunFigures
from plimsoll.telemetry.scheduling import upstream_point
from plimsoll.toolkit.descheduling.unhealthy_nodes import NodeHealth
from plimsoll.toolkit.scheduling.fair_shares import QueueAccount

#: Resources of queues that have series, whatever pods request, and the number of all that have.
ALWAYS, MOST_RESOURCES = ("cpu", "memory"), 8


class Sources(Struct, frozen=True):
    """Functions that return the figures.

    Attributes:
        rejections: For each waiting pod: its profile, and the plugins that rejected its last attempt.
        in_flight: Binding cycles and preemptions under way.
        calls: By profile: numbers of calls by plugin and extension point.
        events_dropped: Number of events that were not written.
        tasks: Number of tasks of the main event loop.
        conditions: For each policy and condition: the policy, the condition's type, whether it is true.
        degraded: For each degraded policy and reason: the policy and the reason.
        runs: Figures of the runs by policy.
        load: The load of the cluster, if readings are collected.
        maintenances: All NodeMaintenances, with their statuses.
        unhealthy: For each policy, its judgement about unhealthy nodes.
        prices: The price of all nodes together an hour, by currency.
        shares: For each queue of fairShare: the profile, and what the queue has.
        groups: All groups of pods, those of owners included.
    """

    queues: Callable[[], Mapping[str, int]]
    cache: Callable[[], Mapping[str, int]]
    rejections: Callable[[], Iterable[tuple[str, Iterable[str]]]]
    in_flight: Callable[[], int]
    calls: Callable[[], Mapping[str, Mapping[tuple[str, str], int]]]
    events_dropped: Callable[[], int]
    tasks: Callable[[], int]
    conditions: Callable[[], Iterable[tuple[str, str, bool]]]
    degraded: Callable[[], Iterable[tuple[str, str]]]
    stalled: Callable[[], Mapping[str, int]]
    runs: Callable[[], Mapping[str, RunFigures]]
    load: Callable[[], LoadSummary | None]
    maintenances: Callable[[], Iterable[NodeMaintenance]]
    unhealthy: Callable[[], Mapping[str, NodeHealth]]
    prices: Callable[[], Mapping[str, float]]
    shares: Callable[[], Iterable[tuple[str, QueueAccount]]]
    groups: Callable[[], Iterable[Group]]


class StateCollector(Collector):
    """Reads its sources at each scrape."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> Sequence[Metric]:
        """The metric families without samples."""
        return list(_families().values())

    def collect(self) -> Iterator[Metric]:
        """The metric families with samples."""
        sources, families = self._sources, _families()
        for queue, depth in sources.queues().items():
            families["pending"].add_metric([queue], depth)
        for kind, size in sources.cache().items():
            families["cache"].add_metric([kind], size)
        waiting = Counter(
            (plugin, profile) for profile, plugins in sources.rejections() for plugin in plugins
        )
        for labels, pods in waiting.items():
            families["unschedulable"].add_metric(labels, pods)
        families["in_flight"].add_metric([], sources.in_flight())
        for profile, counts in sources.calls().items():
            for (plugin, point), calls in counts.items():
                families["calls"].add_metric([plugin, upstream_point(point), profile], calls)
        families["dropped"].add_metric([], sources.events_dropped())
        families["tasks"].add_metric([], sources.tasks())
        for policy, kind, holds in sources.conditions():
            families["conditions"].add_metric([policy, kind], holds)
        for labels in sources.degraded():
            families["degraded"].add_metric(labels, 1)
        for profile, pods in sources.stalled().items():
            families["stalled"].add_metric([profile], pods)
        for policy, figures in sources.runs().items():
            _add_runs(families, policy, figures)
        _add_load(families, sources.load())
        _add_maintenances(families, sources.maintenances())
        _add_unhealthy(families["unhealthy"], sources.unhealthy())
        _add_shares(families["shares"], sources.shares())
        _add_groups(families, sources.groups())
        for currency, amount in sources.prices().items():
            families["prices"].add_metric([currency], amount)
        yield from families.values()


def _add_runs(
    families: Mapping[str, GaugeMetricFamily | CounterMetricFamily], policy: str, figures: RunFigures
) -> None:
    families["next_run"].add_metric([policy], figures.next_run)
    families["due"].add_metric([policy], figures.due)
    if figures.last_success is not None:
        families["last_success"].add_metric([policy], figures.last_success)
    families["moves"].add_metric([policy], figures.in_flight)
    for (resource, usage), points in figures.imbalance.items():
        families["imbalance"].add_metric([policy, resource, usage], points)
    if figures.hot is not None:
        families["load_hot"].add_metric([policy], figures.hot)
        families["load_hot_seconds"].add_metric([policy], figures.hot_s)
    for strategy, pods in figures.violations.items():
        families["violations"].add_metric([policy, strategy], pods)


def _add_load(
    families: Mapping[str, GaugeMetricFamily | CounterMetricFamily], load: LoadSummary | None
) -> None:
    if load is None:
        return
    for state, nodes in load.nodes.items():
        families["load_nodes"].add_metric([state], nodes)
    for name, shares in (("mean", load.mean), ("highest", load.highest), ("spread", load.spread)):
        for resource, share in shares.items():
            families[f"load_{name}"].add_metric([resource], share)


def _add_shares(
    family: GaugeMetricFamily | CounterMetricFamily, found: Iterable[tuple[str, QueueAccount]]
) -> None:
    by_profile: dict[str, list[QueueAccount]] = {}
    for profile, account in found:
        by_profile.setdefault(profile, []).append(account)
    for profile, accounts in by_profile.items():
        named = {name for each in accounts for name in (*each.used, *each.pending, *each.guaranteed)}
        resources = [*ALWAYS, *sorted(named.difference(ALWAYS))[: MOST_RESOURCES - len(ALWAYS)]]
        for each in accounts:
            amounts = {
                "used": each.used,
                "pending": each.pending,
                "guaranteed": each.guaranteed,
                "deserved": each.deserved,
                "borrowed": each.borrowed,
            }
            for kind, by_resource in amounts.items():
                for name in resources:
                    amount = by_resource.get(name, 0) / (1000 if name == "cpu" else 1)
                    family.add_metric([profile, each.name, name, kind], amount)


def _add_groups(
    families: Mapping[str, GaugeMetricFamily | CounterMetricFamily], found: Iterable[Group]
) -> None:
    phases, members = Counter[str](), Counter[str]()
    for group in found:
        if not group.members:
            continue
        census = group.census()
        phases[group.phase(census)] += 1
        members["Waiting"] += max(census.present - census.scheduled - census.succeeded, 0)
        members["Bound"] += census.scheduled - census.running
        members["Running"] += census.running
    for phase in GroupPhase:
        families["groups"].add_metric([phase], phases[phase])
    for state in ("Waiting", "Bound", "Running"):
        families["group_members"].add_metric([state], members[state])


def _add_unhealthy(family: GaugeMetricFamily | CounterMetricFamily, found: Mapping[str, NodeHealth]) -> None:
    for policy, health in found.items():
        for state, nodes in (("Closed", health.closed), ("Waiting", health.waiting)):
            family.add_metric([policy, state], len(nodes))


def _add_maintenances(
    families: Mapping[str, GaugeMetricFamily | CounterMetricFamily], found: Iterable[NodeMaintenance]
) -> None:
    statuses = [each.status for each in found if each.status is not None]
    for phase, amount in Counter(each.phase for each in statuses if each.phase is not None).items():
        families["maintenances"].add_metric([phase], amount)
    nodes = [node for each in statuses for node in each.nodes]
    for state, amount in Counter(node.phase for node in nodes).items():
        families["maintained"].add_metric([state], amount)
    kept: Counter[str] = Counter()
    for node in nodes:
        if node.phase is MaintainedNodePhase.BLOCKED:
            kept[node.reason or ""] += node.pods
    for reason, amount in kept.items():
        families["maintenance_kept"].add_metric([reason], amount)


def _families() -> dict[str, GaugeMetricFamily | CounterMetricFamily]:
    return {
        "next_run": GaugeMetricFamily(
            "plimsoll_rebalancer_next_run_timestamp_seconds",
            "When the next run begins, in seconds since the epoch. Labeled by policy.",
            labels=["policy"],
        ),
        "due": GaugeMetricFamily(
            "plimsoll_rebalancer_run_due_timestamp_seconds",
            "When the earliest run was or is due that has neither succeeded nor failed, in seconds since the "
            "epoch; the next run unless one waits, hangs, crashed or was skipped. Labeled by policy.",
            labels=["policy"],
        ),
        "last_success": GaugeMetricFamily(
            "plimsoll_rebalancer_last_success_timestamp_seconds",
            "When the latest run succeeded, in seconds since the epoch; absent until one has since the start "
            "of the process. Labeled by policy.",
            labels=["policy"],
        ),
        "moves": GaugeMetricFamily(
            "plimsoll_rebalancer_moves_in_flight",
            "Moves that have begun and whose replacement is not ready yet. Labeled by policy.",
            labels=["policy"],
        ),
        "imbalance": GaugeMetricFamily(
            "plimsoll_rebalancer_imbalance_percentage_points",
            "Standard deviation of the utilization of the nodes that the policy considers, as its latest run "
            "found it. Labeled by policy, resource (cpu, memory, pods) and usage (requests; actual where the "
            "policy uses the metrics API).",
            labels=["policy", "resource", "usage"],
        ),
        "violations": GaugeMetricFamily(
            "plimsoll_rebalancer_violations",
            "Pods that a strategy wanted to move in the latest run, whether they move or stay; a run that "
            "reaches a limit looks no further. Labeled by policy and strategy.",
            labels=["policy", "strategy"],
        ),
        "load_hot": GaugeMetricFamily(
            "plimsoll_load_hot_nodes",
            "Nodes that the latest run found over-used by what they use. Labeled by policy.",
            labels=["policy"],
        ),
        "load_hot_seconds": CounterMetricFamily(
            "plimsoll_load_hot_seconds",
            "Seconds that nodes were over-used by what they use, of all nodes together: from each run that "
            "found a node so to the next one that did. Labeled by policy.",
            labels=["policy"],
        ),
        "load_nodes": GaugeMetricFamily(
            "plimsoll_load_nodes",
            "Nodes, as far as what they use is known. Labeled by state: measured; estimated (some pods are "
            "not measured); stale (the latest reading is too old); unknown.",
            labels=["state"],
        ),
        "load_mean": GaugeMetricFamily(
            "plimsoll_load_mean_ratio",
            "Mean of the shares of allocatable that nodes use. Labeled by resource (cpu, memory).",
            labels=["resource"],
        ),
        "load_highest": GaugeMetricFamily(
            "plimsoll_load_highest_ratio",
            "The largest share of allocatable that a node uses. Labeled by resource (cpu, memory).",
            labels=["resource"],
        ),
        "load_spread": GaugeMetricFamily(
            "plimsoll_load_spread_ratio",
            "Standard deviation of the shares of allocatable that nodes use. Labeled by resource (cpu, "
            "memory).",
            labels=["resource"],
        ),
        "prices": GaugeMetricFamily(
            "plimsoll_nodes_price_per_hour",
            "Price of all nodes together an hour, of those that state one in the annotation or label "
            "plimsoll.dev/price-per-hour. Labeled by currency.",
            labels=["currency"],
        ),
        "shares": GaugeMetricFamily(
            "plimsoll_queue_resources",
            "Amounts of the queues of fairShare, with those below them: cpu in cores, memory and storage in "
            "bytes. Labeled by profile, queue, resource (cpu, memory, and up to six more that pods of queues "
            "request) and amount (used, pending, guaranteed, deserved, borrowed).",
            labels=["profile", "queue", "resource", "amount"],
        ),
        "groups": GaugeMetricFamily(
            "plimsoll_scheduler_pod_groups",
            "Groups of pods that have any: PodGroups, ours and those of the core API, and owners that form "
            f"groups. Labeled by phase ({', '.join(GroupPhase)}).",
            labels=["phase"],
        ),
        "group_members": GaugeMetricFamily(
            "plimsoll_scheduler_pod_group_members",
            "Pods of these groups that have not ended. Labeled by state (Waiting, Bound, Running).",
            labels=["state"],
        ),
        "maintenances": GaugeMetricFamily(
            "plimsoll_maintenances",
            "NodeMaintenances. Labeled by phase (Pending, Draining, Blocked, Drained, Stopped, Expired, "
            "Suspended, Invalid).",
            labels=["phase"],
        ),
        "maintained": GaugeMetricFamily(
            "plimsoll_maintenance_nodes",
            "Nodes of NodeMaintenances. Labeled by phase (Waiting, Blocked, Draining, Drained, Missing).",
            labels=["phase"],
        ),
        "maintenance_kept": GaugeMetricFamily(
            "plimsoll_maintenance_kept_pods",
            "Pods on nodes that a NodeMaintenance cannot empty now. Labeled by reason: that of the pod that "
            "keeps the node.",
            labels=["reason"],
        ),
        "unhealthy": GaugeMetricFamily(
            "plimsoll_unhealthy_nodes",
            "Nodes that a policy finds unhealthy, at the latest look. Labeled by policy and state (Closed, "
            "Waiting for others as maxNodes are closed).",
            labels=["policy", "state"],
        ),
        "degraded": GaugeMetricFamily(
            "plimsoll_policy_degraded",
            "1 for each reason for which a policy is degraded now. Labeled by policy and reason.",
            labels=["policy", "reason"],
        ),
        "stalled": GaugeMetricFamily(
            "plimsoll_scheduler_stalled_pods",
            "Pods that have waited for ten minutes although no plugin rejects them: never tried, or five "
            "errors in a row. Labeled by profile.",
            labels=["profile"],
        ),
        "pending": GaugeMetricFamily(
            "plimsoll_scheduler_pending_pods",
            "Pending pods. Labeled by queue (active, backoff, unschedulable, gated).",
            labels=["queue"],
        ),
        "cache": GaugeMetricFamily(
            "plimsoll_scheduler_cache_size",
            "Objects in the cache. Labeled by type (nodes, pods, assumed_pods).",
            labels=["type"],
        ),
        "unschedulable": GaugeMetricFamily(
            "plimsoll_scheduler_unschedulable_pods",
            "Pending pods rejected by a plugin in their last attempt; a pod counts for each such plugin. "
            "Labeled by plugin and profile.",
            labels=["plugin", "profile"],
        ),
        "in_flight": GaugeMetricFamily(
            "plimsoll_scheduler_inflight_bindings",
            "Binding cycles and preemptions in flight.",
        ),
        "calls": CounterMetricFamily(
            "plimsoll_scheduler_plugin_evaluation",
            "Calls of a plugin; results cached from an earlier attempt need none. Labeled by plugin, "
            "extension_point and profile.",
            labels=["plugin", "extension_point", "profile"],
        ),
        "conditions": GaugeMetricFamily(
            "plimsoll_policy_condition",
            "1 if a condition of a policy is true, 0 otherwise. Labeled by policy and type (Accepted, Ready, "
            "Degraded).",
            labels=["policy", "type"],
        ),
        "tasks": GaugeMetricFamily(
            "plimsoll_event_loop_tasks",
            "Tasks of the main event loop that have not ended; more and more of them are a leak.",
        ),
        "dropped": CounterMetricFamily(
            "plimsoll_events_dropped",
            "Events that were not written because too many waited or the API server rejected them.",
        ),
    }
