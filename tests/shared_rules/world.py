"""Random clusters, in which strategies and the scheduler's filters must agree about what is wrong.

A strategy proposes a pod, however little it is allowed to move, exactly if the filter of the same rule
refuses the pod's node once the pod is taken off it. The oracle is a scheduler with that filter alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import ABSENT, PodInfo, Registry, Snapshot
from plimsoll.framework.descheduling import Strategy, Verdict
from plimsoll.framework.descheduling.context import StrategyContext, considered_nodes
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import Namespace, Service
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.plugins import pod_topology_spread
from plimsoll.strategies import IN_TREE as STRATEGIES
from plimsoll.testing.builders import a_cluster, a_node, a_pod

SCHEDULER = "default-scheduler"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "TaintToleration": ("RemovePodsViolatingNodeTaints", {}),
    "NodeAffinity": ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [REQUIRED]}),
    "InterPodAffinity": ("RemovePodsViolatingInterPodAntiAffinity", {}),
    "PodTopologySpread": (
        "RemovePodsViolatingTopologySpreadConstraint",
        {"constraints": ["DoNotSchedule"]},
    ),
}
"""The strategy of each filter, with its arguments."""

ONLY_IF = frozenset(("PodTopologySpread",))
"""Filters whose strategy moves pods only where there are too many, and there one at least."""


def disagreements(seed: int, rule: str) -> list[str]:
    """Sentences about pods that a strategy and the filter judge differently."""
    draw = random.Random(seed)
    cluster = a_start(draw)
    args = _plugin_args(rule, draw)
    alone = build_profile(ProfileConfig(SCHEDULER, args=args), Registry(PLUGINS), _only(rule))
    proposed = _proposed(rule, cluster, alone)
    refused = set(_refused(rule, cluster, alone))
    found = [
        f"seed {seed}: {rule} accepts the node of {uid}, and the strategy moves it"
        for uid in proposed - refused
    ]
    if rule in ONLY_IF:
        stuck = {key.split("/")[0] for key in refused} - {key.split("/")[0] for key in proposed}
        found += [
            f"seed {seed}: {rule} finds too many in one place of {each}, and none moves" for each in stuck
        ]
    else:
        found += [
            f"seed {seed}: {rule} refuses the node of {uid}, and it stays" for uid in refused - proposed
        ]
    return sorted(found)


def proposals(seed: int, rule: str) -> set[str]:
    """The pods that the strategy of a filter proposes."""
    draw = random.Random(seed)
    cluster = a_start(draw)
    config = ProfileConfig(SCHEDULER, args=_plugin_args(rule, draw))
    return _proposed(rule, cluster, build_profile(config, Registry(PLUGINS), _only(rule)))


def _only(rule: str) -> list[Enabled]:
    return [Enabled(name) for name in ("PrioritySort", "DefaultBinder", rule)]


def _plugin_args(rule: str, draw: random.Random) -> dict[str, Any]:
    if rule == "NodeAffinity" and draw.random() < 0.3:
        terms = [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]
        return {rule: {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}
    if rule == "PodTopologySpread" and draw.random() < 0.4:
        given = {"maxSkew": 1, "topologyKey": draw.choice(KEYS), "whenUnsatisfiable": "DoNotSchedule"}
        return {rule: {"defaultingType": "List", "defaultConstraints": [given]}}
    return {}


def _proposed(rule: str, cluster: Cluster, profile: Profile) -> set[str]:
    name, args = RULES[rule]
    strategy: Strategy = StrategyRegistry(STRATEGIES).build(name, args, name)
    policy = RebalancingConfig((strategy,), (), {SCHEDULER: profile})
    context = StrategyContext(
        cluster=cluster,
        nodes=considered_nodes(cluster),
        now=datetime(2026, 1, 1, 12, tzinfo=UTC),
        prospects=ForkProspects(cluster, policy, ForkSchedulers(policy.profiles, cluster)),
    )
    found: set[str] = set()

    def judge(proposal: Any) -> Verdict:
        assert isinstance(proposal, Candidate)
        found.add(proposal.pod.key)
        return Verdict.REFUSED

    run_strategy(strategy, context, judge)
    return found


def _refused(rule: str, cluster: Cluster, profile: Profile) -> Iterator[str]:
    if rule == "PodTopologySpread":
        yield from _too_many(cluster, profile)
        return
    for uid in list(cluster.pods):
        pod = cluster.pods[uid]
        row = cluster.row_of_pod(uid)
        assert row is not None
        without = cluster.fork()
        without.displace(uid)
        if cluster.nodes[row].name not in _accepting(pod, ProfileScheduler(profile, without)):
            yield pod.key


def _too_many(cluster: Cluster, profile: Profile) -> Iterator[str]:
    """Pods whose domain has more than the plugin accepts, by a constraint that counts them."""
    plugin: Any = profile.filter[0]
    snapshot = Snapshot(cluster)
    templates = {pod.template for pod in cluster.pods.values()}
    for pod in cluster.pods.values():
        row = cluster.row_of_pod(pod.uid)
        for rule in (each for one in templates for each in plugin._constraints(one, cluster.objects).hard):
            counts = rule.counts(snapshot)
            domain = counts.domain_of_row[row]
            most = pod_topology_spread._most(rule, counts, counts.sums) + rule.selects_itself
            if rule.means(pod) and domain != ABSENT and counts.sums[domain] > most:
                yield pod.key
                break


def _accepting(pod: PodInfo, scheduler: ProfileScheduler) -> frozenset[str]:
    found = scheduler.evaluate(pod)
    return frozenset(found.feasible) if found.pre_filter.is_success else frozenset()


KEYS = ("kubernetes.io/hostname", "zone", "rack")
APPS, TEAMS = "abc", ("red", "blue")


def a_start(draw: random.Random) -> Cluster:
    """A cluster whose pods were placed without regard to any rule."""
    nodes = []
    for number in range(draw.randint(2, 6)):
        labels = {key: draw.choice("xy") for key in ("zone", "rack") if draw.random() < 0.8}
        labels |= {"disk": draw.choice(("ssd", "hdd"))} if draw.random() < 0.7 else {}
        labels |= {"cores": str(draw.randint(1, 9))}
        effects = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
        taints = (
            [f"{draw.choice('pq')}={draw.randint(1, 4)}:{draw.choice(effects)}"]
            if draw.random() < 0.5
            else []
        )
        nodes.append(a_node(f"n{number}", labels=labels, taints=taints, cpu="64"))
    namespaces = ("one", "two", "three")
    pods = []
    for app in APPS:
        namespace, spec = draw.choice(namespaces), _spec(draw, app)
        for number in range(draw.randint(1, 7)):
            labels = {"app": app if draw.random() < 0.9 else "none", "rev": draw.choice("12")}
            if draw.random() < 0.15:  # the others of an app declare no rule
                spec = _spec(draw, app)
            node = draw.choice(nodes[:2] if draw.random() < 0.6 else nodes).name
            name = f"{app}-{number}" if draw.random() < 0.9 else f"{APPS[0]}-{number}"
            pods.append(
                a_pod(
                    name, namespace=namespace, labels=labels, node=node, owner=f"ReplicaSet/{app}",
                    uid=f"{namespace}-{app}-{number}", **spec,
                )
            )  # fmt: skip
    cluster = a_cluster(nodes, {pod.metadata.uid: pod for pod in pods}.values())
    for name in namespaces:
        labels = {"team": draw.choice(TEAMS)} if draw.random() < 0.8 else {}
        document = {"metadata": {"name": name, "labels": labels}}
        cluster.objects.namespaces[name] = convert(Namespace, document)
        for app in APPS:
            service = {"metadata": {"name": app, "namespace": name}, "spec": {"selector": {"app": app}}}
            cluster.objects.services[f"{name}/{app}"] = convert(Service, service)
    return cluster


def _spec(draw: random.Random, app: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"tolerations": [_toleration(draw) for _ in range(draw.randint(0, 2))]}
    affinity: dict[str, Any] = {}
    if draw.random() < 0.3:
        spec["node_selector"] = {"disk": draw.choice(("ssd", "hdd"))}
    if draw.random() < 0.3:
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [_node_term(draw)]}}
    if draw.random() < 0.5:
        affinity["podAntiAffinity"] = {REQUIRED: [_pod_term(draw) for _ in range(draw.randint(1, 2))]}
    if draw.random() < 0.5:
        spec["topologySpreadConstraints"] = [_constraint(draw, app) for _ in range(draw.randint(1, 2))]
    return {**spec, "affinity": affinity or None}


def _toleration(draw: random.Random) -> dict[str, Any]:
    operator = draw.choice(("Exists", "Equal", "Gt", "Lt"))
    found: dict[str, Any] = {"key": draw.choice("pq"), "operator": operator}
    if operator != "Exists":
        found["value"] = str(draw.randint(1, 4))
    if draw.random() < 0.6:
        found["effect"] = draw.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    if found.get("effect") == "NoExecute" and draw.random() < 0.5:
        found["tolerationSeconds"] = 60
    return found


def _node_term(draw: random.Random) -> dict[str, Any]:
    if draw.random() < 0.3:
        return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0", "n1"]}]}
    if draw.random() < 0.3:
        return {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}
    return {
        "matchExpressions": [{"key": "disk", "operator": draw.choice(("In", "NotIn")), "values": ["ssd"]}]
    }


def _pod_term(draw: random.Random) -> dict[str, Any]:
    keys = (*KEYS, "absent")
    found: dict[str, Any] = {
        "labelSelector": {"matchLabels": {"app": draw.choice(APPS)}},
        "topologyKey": draw.choice(keys),
    }
    match draw.randint(0, 3):
        case 0:
            found["namespaceSelector"] = {"matchLabels": {"team": draw.choice(TEAMS)}}
        case 1:
            found["namespaceSelector"] = {}
        case 2:
            found["namespaces"] = ["one", "two"]
    if draw.random() < 0.3:  # as the API server merges matchLabelKeys
        keys_in = [{"key": "rev", "operator": "In", "values": [draw.choice("12")]}]
        found["labelSelector"]["matchExpressions"] = keys_in
        found["matchLabelKeys"] = ["rev"]
    return found


def _constraint(draw: random.Random, app: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "maxSkew": draw.randint(1, 2),
        "topologyKey": draw.choice(KEYS),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app if draw.random() < 0.8 else draw.choice(APPS)}},
    }
    if draw.random() < 0.4:
        found["minDomains"] = draw.randint(1, 4)
    if draw.random() < 0.3:
        found["nodeAffinityPolicy"] = "Ignore"
    if draw.random() < 0.3:
        found["nodeTaintsPolicy"] = "Honor"
    if draw.random() < 0.3:
        found["matchLabelKeys"] = ["rev"]
    return found
