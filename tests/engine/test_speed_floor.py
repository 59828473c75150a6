"""A floor under the engine's speed, far below what it does, so that a regression by a factor is seen."""

import time

import pytest

from plimsoll.engine.cycle import Outcome, Scheduler
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

NODES, PODS = 1000, 150
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
FAMILIES = {
    "basic": {},
    "spreading": {
        "topologySpreadConstraints": [
            {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **WEB}
        ]
    },
    "preferred-affinity": {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": HOSTNAME, **WEB}}
                ]
            }
        }
    },
    "anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, **WEB}]
            }
        }
    },
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pod_costs_less_than_five_milliseconds_of_cpu(family):
    """At 1,000 nodes; a tenth of that is usual. CPU time, since other tests run beside this one."""
    profile = build_profile(
        ProfileConfig("default-scheduler"),
        Registry(IN_TREE),
        [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
    )
    cluster = a_cluster(a_node(f"n{number}", labels={ZONE: f"z{number % 3}"}) for number in range(NODES))
    scheduler = Scheduler(profile, cluster)
    pods = [
        a_pod(f"p{number}", labels={"app": "web", "group": str(number % 10)}, cpu="10m", **FAMILIES[family])
        for number in range(PODS)
    ]
    start = time.process_time()

    for pod in pods:
        decision = scheduler.schedule(cluster.templates.info(pod))
        assert decision.outcome is Outcome.SCHEDULED
        cluster.place(decision.pod, decision.node)

    assert (time.process_time() - start) / PODS < 0.005
