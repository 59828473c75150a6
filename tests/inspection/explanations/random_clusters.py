"""Random clusters with pending pods, of every reason for which a node refuses a pod."""

from random import Random
from typing import Any

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Registry
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

REGISTRY = Registry(IN_TREE)
PROFILE = build_profile(
    ProfileConfig("default-scheduler"), REGISTRY, [Enabled(*each) for each in DEFAULT_PLUGINS.items()]
)
APPS = ("web", "db", "job")
ZONES = ("a", "b", "c")


def a_random_cluster(random: Random) -> ProfileScheduler:
    """A scheduler on a cluster of 3 to 9 nodes that are mostly full."""
    nodes = []
    for number in range(random.randint(3, 9)):
        labels = {"disk": random.choice(("ssd", "hdd"))} if random.random() < 0.7 else {}
        if random.random() < 0.9:
            labels["zone"] = random.choice(ZONES)
        nodes.append(
            a_node(
                f"n{number}",
                cpu=random.choice(("2", "4", "8")),
                memory=random.choice(("4Gi", "8Gi")),
                pods=random.choice((3, 8, 110)),
                labels=labels,
                taints=random.sample(
                    ["dedicated=gpu:NoSchedule", "old:NoExecute", "soft:PreferNoSchedule"],
                    random.choice((0, 0, 0, 1, 2)),
                ),
                unschedulable=random.random() < 0.1,
                allocatable={"example.com/gpu": 2} if random.random() < 0.3 else {},
            )
        )
    pods = []
    for number in range(random.randint(4, 20)):
        node = random.choice(nodes)
        app = random.choice(APPS)
        pods.append(
            a_pod(
                f"placed-{number}",
                labels={"app": app},
                cpu=f"{random.randrange(100, 2500, 50)}m",
                memory=f"{random.randrange(64, 3000, 64)}Mi",
                node=node.name,
                affinity={"podAntiAffinity": required(app_term(app, "zone"))}
                if random.random() < 0.15
                else None,
                **with_port(8080 if random.random() < 0.2 else 0),
            )
        )
    return ProfileScheduler(PROFILE, a_cluster(nodes, pods))


def app_term(app: str, key: str) -> dict[str, Any]:
    """Pods of an app in one domain."""
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """The required terms of a pod (anti-)affinity."""
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def with_port(port: int) -> dict[str, Any]:
    """A sidecar with a host port, or nothing."""
    return (
        {}
        if not port
        else {
            "initContainers": [
                {
                    "name": "side",
                    "restartPolicy": "Always",
                    "ports": [{"containerPort": port, "hostPort": port}],
                }
            ]
        }
    )


def a_random_pod(random: Random, scheduler: ProfileScheduler, number: int) -> PodInfo:
    """A pending pod with some demands."""
    app = random.choice(APPS)
    affinity: dict[str, Any] = {}
    if random.random() < 0.25:
        affinity["podAntiAffinity"] = required(
            app_term(random.choice(APPS), random.choice(("zone", "kubernetes.io/hostname")))
        )
    if random.random() < 0.2:
        affinity["podAffinity"] = required(app_term(random.choice((*APPS, "cache")), "zone"))
    if random.random() < 0.2:
        term = {"key": "disk", "operator": random.choice(("In", "NotIn")), "values": ["nvme", "hdd"]}
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [term]}]
            }
        }
    spec: dict[str, Any] = {}
    if random.random() < 0.3:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": random.choice(("zone", "kubernetes.io/hostname")),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
    if random.random() < 0.5:
        spec |= with_port(8080)
    pod = a_pod(
        f"pending-{number}",
        labels={"app": app},
        cpu=f"{random.randrange(500, 9000, 125)}m",
        memory=f"{random.randrange(256, 9000, 128)}Mi",
        requests={"example.com/gpu": random.randint(1, 3)} if random.random() < 0.15 else {},
        node_selector={"disk": random.choice(("ssd", "nvme"))} if random.random() < 0.3 else {},
        tolerations=[{"key": "dedicated", "operator": "Exists"}] if random.random() < 0.2 else [],
        affinity=affinity or None,
        **spec,
    )
    return scheduler.cluster.templates.info(pod)
