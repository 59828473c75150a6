"""As long as the version of a plugin's results stays, so do they: every in-tree plugin that has one."""

from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.engine.plugin_reach import VersionedPlugin
from plimsoll.framework import CycleState, NodeFilter, Reads, Registry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.plugins import IN_TREE
from plimsoll.testing.builders import a_cluster, a_node
from plimsoll.testing.drawn_worlds import some_pod

REGISTRY = Registry(IN_TREE)
PLUGINS = [
    plugin for name in REGISTRY if isinstance(plugin := REGISTRY.build(name, None, "args"), VersionedPlugin)
]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
#: More nodes than FEW_DOMAINS: versions of hosts are by row.
NODES = [a_node(f"n{number}", labels={ZONE: f"z{number % 2}", HOST: f"n{number}"}) for number in range(300)]


@cache
def empty() -> Cluster:
    """A cluster of all nodes, which stays as it is."""
    return a_cluster(NODES)


def said(plugin: Any, pod: Any, cluster: Any) -> Any:
    """What PreFilter, Filter and (whether it skips) PreScore say; codes of no node when PreFilter skips."""
    state, snapshot = CycleState(), Snapshot(cluster)
    status = plugin.pre_filter(state, pod, snapshot)
    codes = plugin.filter(state, pod, snapshot) if status.is_success else np.zeros(len(snapshot), np.int64)
    skips = hasattr(plugin, "pre_score") and plugin.pre_score(CycleState(), pod, snapshot).is_skip
    return status, codes.copy(), skips


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: cast("NodeFilter", plugin).name)
@settings(max_examples=120, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    asked=some_pod(),
    moves=st.lists(st.tuples(some_pod("other"), st.sampled_from(["n0", "n1", "n299"])), max_size=6),
)
def test_results_hold_while_the_version_stays(plugin: Any, asked: Any, moves: Any) -> None:
    """PreFilter, Filter on rows that did not change (or on all), and that PreScore skips."""
    cluster = empty().fork()
    pod = cluster.templates.info(asked)
    if plugin.pre_filter(CycleState(), pod, Snapshot(cluster)).code == "Error":
        return
    version, (status, codes, skips) = (
        plugin.result_version(pod.template, Snapshot(cluster)),
        said(plugin, pod, cluster),
    )
    for other, node in moves:
        cluster.place(cluster.templates.info(other), node)
        now = plugin.result_version(pod.template, Snapshot(cluster))
        status_now, codes_now, skips_now = said(plugin, pod, cluster)
        if version is not None and (now == version or version.lasts):
            same = codes == codes_now
            if version.by_row or plugin.declares.reads is not Reads.CLUSTER:
                same[[cluster.rows[each] for each in ("n0", "n1", "n299")]] = True
            assert status == status_now
            assert same.all()
            assert skips_now or not skips
        version, status, codes, skips = now, status_now, codes_now, skips_now
