"""Decisions stay right when values that no node has any more are forgotten, and the others get new ids."""

from plimsoll.engine.attempt import schedule
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.columns.coded_column import STALE_VALUES
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate

ZONE = "topology.kubernetes.io/zone"
PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)


def test_taints_that_are_renewed_for_ever_do_not_add_up() -> None:
    """As by a component that writes when it happened; and decisions follow the taint, before and after."""
    cluster = a_cluster([a_node("a"), a_node("b")])
    scheduler = ProfileScheduler(PROFILE, cluster)
    for second in range(500):
        tainted, free = ("a", "b") if second % 2 else ("b", "a")
        cluster.set_node(a_node(tainted, taints=[f"out=since-{second}:NoSchedule"]))
        cluster.set_node(a_node(free))
        pod = cluster.templates.info(a_pod("p", cpu="1"))

        assert schedule(scheduler, pod).node == free
    assert len(cluster.taints.values) <= 2 * 2 + STALE_VALUES
    validate(cluster)


def test_spreading_follows_when_ids_change() -> None:
    """Sums by domain are those of the new ids."""
    cluster = a_cluster([a_node(name, labels={ZONE: name}) for name in "ab"])
    scheduler = ProfileScheduler(PROFILE, cluster)
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }

    def web(name: str) -> PodInfo:
        return cluster.templates.info(a_pod(name, labels={"app": "web"}, topologySpreadConstraints=[spread]))

    for number in range(300):
        cluster.set_node(a_node("a", labels={ZONE: f"zone-{number}"}))
        first, second = web(f"first-{number}"), web(f"second-{number}")
        cluster.place(first, schedule(scheduler, first).node)
        cluster.place(second, schedule(scheduler, second).node)
        assert {cluster.row_of_pod(first.uid), cluster.row_of_pod(second.uid)} == {0, 1}
        cluster.displace(first.uid)
        cluster.displace(second.uid)
    assert len(cluster.label(ZONE).values) <= 2 * 2 + STALE_VALUES
