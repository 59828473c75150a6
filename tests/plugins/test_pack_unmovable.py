"""PackUnmovable, by its own arithmetic and the conformance laws; and which pods count as unmovable."""

from typing import Any

import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework import CycleState, NoArgs
from plimsoll.framework.descheduling.registry import EvictorRegistry
from plimsoll.inspection.catalogue import Catalogue
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.model.kinds.workload import Namespace, PriorityClass, ReplicaSet
from plimsoll.planning.scope import PolicyScope
from plimsoll.plugins.pack_unmovable import PackUnmovable
from plimsoll.strategies import EVICTORS
from plimsoll.testing.builders import a_cluster, a_node, a_pod, put
from plimsoll.testing.conformance import ScorePluginConformance
from plimsoll.toolkit.descheduling.unmovable_pods import StayRule

STAYS = {"plimsoll.dev/evict": "false"}
SCHEDULER = "default-scheduler"


def a_plugin() -> PackUnmovable:
    """The plugin of a policy that moves whatever its owner lets go."""
    built = EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 0}, "evictor")
    plugin = PackUnmovable(NoArgs())
    plugin.rule = StayRule(lambda _: (PolicyScope(), built))
    return plugin


def of_a_policy(policy_scope: Any = None, **rebalancing: Any) -> PackUnmovable:
    """The plugin of a policy, as the operator sets it up."""
    document = {
        "metadata": {"name": "p"},
        "spec": {
            "scope": policy_scope or {},
            "scheduling": {
                "schedulerName": SCHEDULER,
                "plugins": {"multiPoint": {"enabled": [{"name": "PackUnmovable", "weight": 5}]}},
            },
            **({"rebalancing": rebalancing} if rebalancing else {}),
        },
    }
    policy, catalogue = SchedulingPolicy.model_validate(document), Catalogue()
    assert policy.spec.scheduling is not None
    profile = catalogue.profile(policy.spec.scheduling, "p")
    catalogue.tell_who_stays([policy] if rebalancing else [], {SCHEDULER: profile})
    (plugin,) = (each for each in profile.score if isinstance(each, PackUnmovable))
    return plugin


def points(plugin: PackUnmovable, cluster: Cluster, pod: Pod) -> list[int] | None:
    """Points by node; None if the plugin skips."""
    state, info, snapshot = CycleState(), cluster.templates.info(pod), Snapshot(cluster)
    if plugin.pre_score(state, info, snapshot).is_skip:
        return None
    found: list[int] = plugin.score(state, info, snapshot).tolist()
    return found


def pinned(annotations: dict[str, str], name: str = "p", **more: Any) -> Pod:
    return a_pod(name, owner="ReplicaSet/web", metadata={"annotations": annotations}, **more)


def test_scores_match_worked_examples() -> None:
    """Nodes of 4 cpu and 8 GiB: one pod of 1 cpu that stays, pods of 3 cpu and 6 GiB, and movable ones."""
    cluster = a_cluster(
        [a_node("a"), a_node("b"), a_node("c"), a_node("d")],
        [
            pinned(STAYS, "one", node="a", cpu="1", memory="1Gi"),
            pinned(STAYS, "two", node="b", cpu="1", memory="2Gi"),
            pinned(STAYS, "three", node="b", cpu="1", memory="4Gi"),
            pinned({}, "four", node="b", cpu="1"),
            pinned({}, "five", node="c", cpu="3"),
        ],
    )

    # a: 50 + 50 * 1/4, b: 50 + 50 * 6/8
    assert points(a_plugin(), cluster, pinned(STAYS)) == [62, 87, 0, 0]
    assert points(a_plugin(), cluster, pinned({})) == [38, 13, 100, 100]


def test_the_column_follows_pods_that_come_and_go() -> None:
    """One that stays comes, then its deletion begins; the second time as the first."""
    cluster, plugin = a_cluster([a_node("a"), a_node("b")]), a_plugin()
    for turn in range(2):
        assert points(plugin, cluster, pinned({})) == [100, 100]
        pod = cluster.templates.info(pinned(STAYS, f"s{turn}", node="b", cpu="2", memory="1Gi"))
        cluster.place(pod, "b")
        assert points(plugin, cluster, pinned({})) == [100, 25]
        leaving = pinned(STAYS, f"s{turn}", node="b", cpu="2", memory="1Gi")
        leaving = a_pod(
            f"s{turn}",
            owner="ReplicaSet/web",
            node="b",
            metadata={"annotations": STAYS, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        )
        cluster.displace(pod.uid)
        cluster.place(cluster.templates.info(leaving), "b")
        assert points(plugin, cluster, pinned({})) == [100, 100]
        cluster.displace(leaving.uid)


def test_pods_of_daemon_sets_count_nowhere() -> None:
    """They are on every node whatever the plugin says."""
    agent = a_pod("agent", owner="DaemonSet/agent", node="a")
    cluster = a_cluster([a_node("a"), a_node("b")], [agent])

    assert points(a_plugin(), cluster, agent) is None
    assert points(a_plugin(), cluster, pinned({})) == [100, 100]


def test_a_policy_that_moves_nothing_and_none_at_all_say_nothing() -> None:
    cluster = a_cluster([a_node("a")], [pinned(STAYS, "one", node="a")])

    assert points(PackUnmovable(NoArgs()), cluster, pinned({})) is None
    assert points(of_a_policy(), cluster, pinned({})) is None


def replica_set(replicas: int) -> ReplicaSet:
    return convert(
        ReplicaSet,
        {
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-ReplicaSet/web"},
            "spec": {"replicas": replicas},
        },
    )


EMPTY_DIR: dict[str, Any] = {"volumes": [{"name": "v", "emptyDir": {}}]}
CLAIM: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
ONE = {"minReplicas": 1}


@pytest.mark.parametrize(
    ("stays", "pod", "rebalancing"),
    [
        pytest.param(False, pinned({}), {}, id="three-replicas"),
        pytest.param(True, pinned(STAYS), {}, id="our-opt-out"),
        pytest.param(True, pinned({"karpenter.sh/do-not-disrupt": "true"}), {}, id="karpenters"),
        pytest.param(True, pinned({"karpenter.sh/do-not-disrupt": "48h"}), {}, id="a-job-of-two-days"),
        pytest.param(False, pinned({"karpenter.sh/do-not-disrupt": "30m"}), {}, id="a-start-of-30-minutes"),
        pytest.param(True, a_pod("bare"), {}, id="bare"),
        pytest.param(True, pinned({}, **EMPTY_DIR), {}, id="local-storage"),
        pytest.param(
            False,
            pinned({}, **EMPTY_DIR),
            {"evictor": {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}},
            id="local-storage-that-may-go",
        ),
        pytest.param(True, pinned({}, **CLAIM), {}, id="claims-by-default"),
        pytest.param(True, pinned({}), {"evictor": {"minReplicas": 4}}, id="too-few-replicas"),
        pytest.param(False, pinned({}), {"evictor": {"minPodAge": "48h"}}, id="young-for-a-while"),
        pytest.param(
            True, pinned({}), {"evictor": {"labelSelector": {"matchLabels": {"a": "b"}}}}, id="labels"
        ),
    ],
)
def test_what_a_policy_would_never_move(stays: bool, pod: Pod, rebalancing: dict[str, Any]) -> None:
    """Of a ReplicaSet of three where nothing else is said; a pod that waits as one that runs."""
    cluster = a_cluster([a_node("a"), a_node("b")], objects=[replica_set(3)])
    held = cluster.templates.info(pinned(STAYS, "held", node="b", cpu="0", memory="0"))
    cluster.place(held, "b")

    found = points(of_a_policy(mode="Enforce", **rebalancing), cluster, pod)

    assert found == ([0, 50] if stays else [100, 50])


def test_a_single_replica_stays_unless_a_surge_moves_it() -> None:
    """By what its ReplicaSet wants, not by how many there are at the moment."""
    cluster = a_cluster([a_node("a")], [pinned(STAYS, "held", node="a", cpu="0", memory="0")])
    put(cluster, replica_set(1))

    assert points(of_a_policy(mode="Enforce"), cluster, pinned({})) == [50]
    assert points(of_a_policy(mode="Enforce", evictor=ONE), cluster, pinned({})) == [50]
    cluster = a_cluster([a_node("a"), a_node("b")], [pinned({}, "held", node="a", cpu="0", memory="0")])
    put(cluster, replica_set(1))
    assert points(of_a_policy(mode="Enforce"), cluster, pinned({})) == [50, 0]
    assert points(of_a_policy(mode="Enforce", surge=True), cluster, pinned({})) == [100, 100]
    assert points(of_a_policy(mode="Enforce", evictor=ONE), cluster, pinned({})) == [100, 100]


def test_scope_namespaces_rules_and_classes_decide_as_they_change() -> None:
    """The same plugin, each of them set and taken away again."""
    cluster = a_cluster([a_node("a"), a_node("b")], [pinned({}, "there", node="a", cpu="0", memory="0")])
    put(cluster, replica_set(3))
    plugin = of_a_policy({"priorityThreshold": {"name": "high"}}, mode="Enforce")
    high = convert(PriorityClass, {"metadata": {"name": "high"}, "value": 1000})

    assert points(plugin, cluster, pinned({})) == [50, 0]  # the class is missing: all is out of scope
    put(cluster, high)
    for _ in range(2):
        assert points(plugin, cluster, pinned({})) == [100, 100]
        ours = convert(Namespace, {"metadata": {"name": "default", "annotations": STAYS}})
        put(cluster, ours)
        assert points(plugin, cluster, pinned({})) == [50, 0]
        put(cluster, convert(Namespace, {"metadata": {"name": "default"}}))
        assert points(plugin, cluster, pinned({})) == [100, 100]
        rule = convert(
            RebalancingRule, {"metadata": {"name": "r", "namespace": "default"}, "spec": {"never": True}}
        )
        put(cluster, rule)
        assert points(plugin, cluster, pinned({})) == [50, 0]
        put(cluster, rule, gone=True)
        window = {"schedule": "0 0 1 1 *", "duration": "1h"}
        rule = convert(
            RebalancingRule,
            {"metadata": {"name": "r", "namespace": "default"}, "spec": {"windows": [window]}},
        )
        put(cluster, rule)
        assert points(plugin, cluster, pinned({})) == [100, 100], "a closed window passes"
        put(cluster, rule, gone=True)


def test_each_profile_asks_its_own_policy() -> None:
    """The pod of a class that one policy leaves alone."""
    cluster = a_cluster([a_node("a"), a_node("b")], [pinned({}, "there", node="a", cpu="0", memory="0")])
    put(cluster, replica_set(3))
    out = of_a_policy({"namespaces": {"exclude": ["default"]}}, mode="Enforce")

    assert points(out, cluster, pinned({})) == [50, 0]
    assert points(of_a_policy(mode="Enforce"), cluster, pinned({})) == [100, 100]


class TestConformance(ScorePluginConformance):
    """The laws every score plugin obeys."""

    plugin = a_plugin()
    pods = ({}, {"owner": "ReplicaSet/web", "metadata": {"annotations": STAYS}})
