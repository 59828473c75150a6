"""Every pod index is what it would be if built now, and if pods were added one by one."""

from __future__ import annotations

import importlib
import pkgutil
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

import plimsoll.framework
import plimsoll.load
import plimsoll.model
import plimsoll.planning
import plimsoll.plugins
import plimsoll.strategies
from plimsoll.devices.fork_devices import ForkDevices
from plimsoll.framework.descheduling.pod_indexes import PodGroups
from plimsoll.framework.selectors import selector_of_labels
from plimsoll.load.load_book import LoadBook
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import FollowsFork, PodIndex
from plimsoll.model.columns.pod_counts import PodClass, PodCounts
from plimsoll.model.columns.pods_by_importance import PodsByImportance
from plimsoll.model.columns.snapshot import Snapshot
from plimsoll.model.gang_members import GangMembers
from plimsoll.model.kinds.gang_marks import gangs_of
from plimsoll.model.kinds.metadata import OwnerReference
from plimsoll.model.kinds.pod import Pod, PodCondition
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate
from plimsoll.testing.builders import a_node, a_pod

#: What tells when an index changed, who shares it, or what it found at an earlier question, not what it says.
BOOKKEEPING = {"_dirty", "_memberships", "_own", "_shared", "sorted_at", "version"}

#: Made whole by their subclasses; or learnt over time; or about claims, which a fork writes.
ABSTRACT = {PodGroups, FollowsFork, LoadBook, ForkDevices}

DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def kinds_of(base: type[Any]) -> set[type[Any]]:
    """The subclasses of a class, theirs too, that the product defines."""
    below = {each for kind in base.__subclasses__() for each in {kind, *kinds_of(kind)}}
    return {each for each in below if each.__module__.startswith("plimsoll.")}


def every_kind() -> list[type[Any]]:
    for package in (
        plimsoll.framework,
        plimsoll.load,
        plimsoll.model,
        plimsoll.planning,
        plimsoll.plugins,
        plimsoll.strategies,
    ):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return sorted(
        (kind for kind in kinds_of(PodIndex) if not kind.__name__.startswith("_") and kind not in ABSTRACT),
        key=lambda kind: kind.__name__,
    )


def told(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """What a value holds, in a form that can be compared; a pod is its uid and its resource version."""
    if isinstance(value, PodInfo | PodTemplate):
        is_pod = isinstance(value, PodInfo)
        return (value.uid, value.pod.metadata.resource_version) if is_pod else value.signature.hex()
    if isinstance(value, msgspec.Struct):
        return told(msgspec.structs.asdict(value), seen)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {repr(told(key, seen)): told(each, seen) for key, each in value.items()}
    if isinstance(value, list | tuple):
        items = [told(each, seen) for each in value]
        return sorted(items, key=repr) if value and isinstance(value[0], msgspec.Struct) else items
    if isinstance(value, set | frozenset):
        return sorted(repr(told(each, seen)) for each in value)
    if (
        type(value).__module__.startswith("plimsoll.")
        and hasattr(value, "__dict__")
        and id(value) not in seen
    ):
        held = {name: each for name, each in vars(value).items() if name not in BOOKKEEPING}
        return told(held, seen | {id(value)})
    return repr(value) if isinstance(value, int | float | str | datetime | None) else ""


def now_in(pod: Pod, version: int, **status: Any) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version=str(version))
    return msgspec.structs.replace(
        pod, metadata=metadata, status=msgspec.structs.replace(pod.status, **status)
    )


def ready(value: str) -> tuple[PodCondition, ...]:
    return (PodCondition(type="Ready", status=value),)


def adopted(pod: Pod, uid: str) -> Pod:
    """The pod with another owner that is not its controller."""
    owner = OwnerReference(api_version="v1", kind="ConfigMap", name=uid, uid=uid)
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=(owner,))
    )


def states(pod: Pod) -> list[Pod]:
    """What a watch shows of a pod in its life, one after the other."""
    return [
        now_in(pod, 2, phase="Pending"),
        now_in(pod, 3, phase="Running", start_time=STARTED),
        now_in(pod, 4, phase="Running", start_time=STARTED, conditions=ready("True")),
        now_in(adopted(pod, "one"), 5, phase="Running", start_time=STARTED, conditions=ready("True")),
        now_in(adopted(pod, "two"), 6, phase="Running", start_time=STARTED, conditions=ready("False")),
        now_in(pod, 7, phase="Failed", start_time=STARTED),
    ]


def a_small_cluster() -> tuple[Cluster, list[Pod]]:
    cluster = Cluster()
    for name in ("n0", "n1"):
        cluster.set_node(a_node(name, cpu="8", memory="32Gi"))
    pods = [
        a_pod(
            "web",
            node="n0",
            cpu="1",
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        ),
        a_pod("db", node="n0", cpu="1", labels={"app": "db"}),
        a_pod("job", node="n1", cpu="1"),
    ]
    for pod in pods:
        cluster.place(cluster.templates.info(now_in(pod, 1)), pod.spec.node_name)
    return cluster, pods


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.__name__)
def test_an_index_is_what_it_would_be_if_built_now(kind: type[Any]) -> None:
    cluster, pods = a_small_cluster()
    index = cluster.index(kind)
    for at in range(6):
        for pod in pods:
            cluster.place(cluster.templates.info(states(pod)[at]), pod.spec.node_name)
        twin = cluster.fork()
        twin._indexes.clear()
        built = twin.index(kind)
        for each, snapshot in ((index, Snapshot(cluster)), (built, Snapshot(twin))):
            if isinstance(each, PodsByImportance):
                each.refresh(snapshot)
        assert told(index) == told(built), at


def a_crowd() -> list[tuple[Pod, str]]:
    """Siblings that differ in requests, age, groups, and whether they are ready or leaving."""
    terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    marks = [{}, {}, {"scheduling.k8s.io/group-name": "train"}]
    found = []
    for number in range(24):
        labels = {"app": "web"} if number % 4 else {"app": "db", "plimsoll.dev/pod-group": "g"}
        pod = a_pod(
            f"p{number}",
            node=f"n{number % 3}",
            cpu=f"{1 + number % 2}",
            owner=f"ReplicaSet/{'web' if number % 5 else 'db'}",
            labels=labels,
            annotations=marks[number % 3],
            affinity=apart if number % 6 == 1 else None,
            volumes=[DATA] if number % 8 == 2 else [],
        )
        pod = now_in(pod, number, conditions=ready("True" if number % 3 else "False"))
        metadata = msgspec.structs.replace(
            pod.metadata,
            creation_timestamp=STARTED + timedelta(minutes=(7 * number) % 24),
            deletion_timestamp=STARTED if number % 7 == 3 else None,
        )
        found.append((msgspec.structs.replace(pod, metadata=metadata), f"n{number % 3}"))
    return found


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.__name__)
def test_pods_that_are_added_together_count_as_if_one_after_the_other(kind: type[Any]) -> None:
    cluster = Cluster()
    for number in range(3):
        cluster.set_node(a_node(f"n{number}", cpu="64", memory="256Gi"))
    pods = [(cluster.templates.info(pod), cluster.rows[node]) for pod, node in a_crowd()]
    singly, first, second = kind(cluster), kind(cluster), kind(cluster)
    for pod, row in pods:
        singly.add(pod, row)
    first.add_all(pods)
    second.add_all(pods[:9])
    second.add_all(pods[9:])

    assert told(first) == told(singly)
    assert told(second) == told(singly)


def test_classes_and_gangs_of_a_crowd_are_those_of_its_pods() -> None:
    """A class that was counted before counts those who come; siblings may name different gangs."""
    cluster = Cluster()
    for number in range(3):
        cluster.set_node(a_node(f"n{number}", cpu="64", memory="256Gi"))
    pods = [(cluster.templates.info(pod), cluster.rows[node]) for pod, node in a_crowd()]
    web = PodClass(((None, selector_of_labels({"app": "web"})),), living=True)
    counts, gangs = PodCounts(cluster), GangMembers(cluster)

    before = counts.of(web).total
    counts.add_all(pods)
    gangs.add_all(pods)

    living = [pod for pod, _ in pods if pod.labels["app"] == "web" and not pod.is_terminating]
    assert (before, counts.of(web).total) == (0, len(living))
    assert gangs.gangs == {pod.uid: named for pod, _ in pods if (named := gangs_of(pod.pod))}
