"""Members that differ only in labels share the results of one of them, and get the same nodes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import pytest

from plimsoll import framework as fwk
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.gangs import placement
from plimsoll.engine.gangs.placement import place_together
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

if TYPE_CHECKING:
    from plimsoll.model.columns.cluster import Cluster
    from plimsoll.model.kinds.pod import Pod

RACK, ZONE = "example.com/rack", "topology.kubernetes.io/zone"
DEFAULT = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]


class AvoidsOdd(fwk.FilterPlugin):
    """Reads a label of the pod, and says so by declaring nothing more than what it reads of the cluster."""

    name: ClassVar = "AvoidsOdd"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE)

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 on the nodes whose number has the parity of the pod's index, shape (N,)."""
        index = int(pod.template.labels.get("index", "0"))
        codes = fwk.all_feasible(snapshot)
        for row in snapshot.rows.tolist():
            codes[row] = (row + index) % 2
        return codes

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal."""
        return fwk.unresolvable("node(s) had the wrong parity")


def a_term(**labels: str) -> dict[str, Any]:
    """Pods of these labels are kept off the node of the pod that has the term."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def drawn(seed: int) -> tuple[Cluster, list[Pod], dict[str, Any]]:
    """A cluster in which pods keep single members off, score them, or do neither; and an indexed group."""
    draw = random.Random(seed)
    nodes = [
        a_node(
            f"n{at}",
            cpu=str(draw.choice((2, 4))),
            labels={RACK: f"r{at % 4}", ZONE: f"z{at % 2}", "kubernetes.io/hostname": f"n{at}"},
            taints=["dear=yes:PreferNoSchedule"] if draw.random() < 0.2 else [],
        )
        for at in range(16)
    ]
    running = [
        a_pod(f"run-{at}", cpu="500m", node=f"n{draw.randrange(16)}", affinity=a_term(index=str(at + 3)))
        for at in range(draw.choice((0, 0, 2, 4)))
    ]
    preferred = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {**_first(a_term(index="5"))}}
            ]
        }
    }
    if draw.random() < 0.3:
        running.append(a_pod("fond", cpu="100m", node="n3", affinity=preferred))
    members = [
        a_pod(
            f"m-{at}",
            labels={"index": str(at)},
            cpu=draw.choice(("1", "1", "500m")),
            priority=draw.choice((0, 0, 1)),
        )
        for at in range(draw.randint(6, 14))
    ]
    where = draw.choice(({}, {"within": ZONE}, {"near": (RACK,)}))
    return a_cluster(nodes, running), members, where


def _first(affinity: dict[str, Any]) -> dict[str, Any]:
    term: dict[str, Any] = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    return term


def places(cluster: Cluster, pods: list[Pod], where: dict[str, Any], *extra: Enabled) -> dict[str, str]:
    """The node of each member that got one, with the first of equally good nodes."""
    registry = fwk.Registry((*IN_TREE, AvoidsOdd))
    profile = build_profile(ProfileConfig("s"), registry, [*DEFAULT, *extra])
    scheduler = ProfileScheduler(profile, cluster)
    members = [(cluster.templates.info(pod), scheduler) for pod in pods]
    found = place_together(members, cluster, len(pods) // 2, **where)
    return {each.decision.pod.name: each.node for each in found.placements}


@pytest.mark.parametrize("extra", [(), (Enabled(AvoidsOdd.name, 1),)], ids=["default", "reads labels"])
def test_members_get_the_nodes_that_they_would_get_alone(extra: tuple[Enabled, ...]) -> None:
    """Also those that pods keep off or attract, and with a plugin that reads labels."""
    for seed in range(60):
        cluster, pods, where = drawn(seed)
        found = places(cluster, pods, where, *extra)
        with patch.object(placement._Twins, "sibling", lambda self, twin, pod: pod):
            assert found == places(cluster, pods, where, *extra), seed


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            patch.object(ProfileScheduler, "is_of_no_concern", lambda self, pod: True), id="concerns"
        ),
        pytest.param(
            patch.object(ProfileScheduler, "decides_by", lambda self, template: template.constraints),
            id="amounts",
        ),
    ],
)
def test_it_would_be_noticed(fault: Any) -> None:
    """Planted: terms about members do not matter, or amounts do not."""
    with fault, pytest.raises(AssertionError):
        test_members_get_the_nodes_that_they_would_get_alone(())


def test_a_plugin_that_reads_labels_is_not_passed_over() -> None:
    """Planted: it claims to read constraints only."""
    declared = fwk.Declares(reads=fwk.Reads.NODE, only_requests=True)
    with patch.object(AvoidsOdd, "declares", declared), pytest.raises(AssertionError):
        test_members_get_the_nodes_that_they_would_get_alone((Enabled(AvoidsOdd.name, 1),))


def test_an_indexed_group_is_evaluated_once() -> None:
    """Without terms about its members one evaluation on all nodes serves all of them."""
    nodes = [a_node(f"n{at}", labels={RACK: f"r{at % 4}"}) for at in range(8)]
    pods = [a_pod(f"m-{at}", labels={"index": str(at)}, cpu="500m") for at in range(12)]
    made: list[TemplateCache] = []
    init = TemplateCache.__init__

    def noted(self: TemplateCache, *args: Any) -> None:
        made.append(self)
        init(self, *args)

    with patch.object(TemplateCache, "__init__", noted):
        assert len(places(a_cluster(nodes), pods, {})) == 12
    assert len(made) == 1
